-- The ledger of what every job still lacks. Each operation is one call of this script, so it happens wholly or not at all.
--
-- job:ID          hash: recipe, total, done, state, created, deadline, priority, owner, digest, ids, outcome:*
-- job:ID:done     bitmap: the rows that have their verdict. It alone decides, so nothing is ever counted twice.
-- job:ID:out      stream: the verdicts in the order in which they came; entry N-0 is the N-th
-- job:ID:batches  set: its batches that are not done
-- batch:ID        hash: kind, recipe, members ([job, row]...), units, payload, losses, deadline, priority, trace
-- open:NAME       hash: a group that waits for members from other jobs
-- ready:KIND      sorted set of batches, by when they are due (enqueued, less the head start of their priority)
-- since:KIND      sorted set of the same batches, by when they were enqueued
-- leased          sorted set of batches, by when their lease ends
-- deadlines       sorted set of batches, by the deadline of their jobs
-- waiting         sorted set of open groups, by when they are given up
-- kinds, workers, jobs, dead

local prefix, op = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local function key(...)
    return prefix .. table.concat({ ... }, ':')
end

local function finish(job, state)
    local id, keep = key('job', job), redis.call('HGET', key('job', job), 'keep')
    redis.call('HSET', id, 'state', state, 'finished', now)
    redis.call('HDEL', id, 'ids')
    for _, name in ipairs({ id, id .. ':done', id .. ':out' }) do
        redis.call('EXPIRE', name, keep)
    end
    redis.call('DEL', id .. ':batches')
    redis.call('ZREM', key('jobs'), job)
end

-- The one place where a row gets its verdict: 1 when it had none, else 0.
local function settle(job, row, outcome, verdict)
    local id = key('job', job)
    if redis.call('EXISTS', id) == 0 or redis.call('SETBIT', id .. ':done', row, 1) == 1 then
        return 0
    end
    local done = redis.call('HINCRBY', id, 'done', 1)
    redis.call('XADD', id .. ':out', done .. '-0', 'row', row, 'verdict', verdict)
    redis.call('HINCRBY', id, 'outcome:' .. outcome, 1)
    if done == tonumber(redis.call('HGET', id, 'total')) then
        local cancelled = redis.call('HGET', id, 'state') == 'cancelled'
        finish(job, cancelled and 'cancelled' or 'done')
    end
    return 1
end

-- The ids of a job's rollouts. Read once in a call: all rows of a large job may need theirs.
local ids_of = {}
local function rollout_id(job, row)
    if not ids_of[job] then
        local ids = redis.call('HGET', key('job', job), 'ids')
        ids_of[job] = ids and cjson.decode(ids) or {}
    end
    return ids_of[job][row + 1] or ''
end

local function ungraded(job, row, reason, why)
    local id = rollout_id(job, row)
    local verdict = '{"id":' .. cjson.encode(id) .. ',"reward":null,"outcome":"ungraded","reason":"' .. reason
        .. '","explanation":' .. cjson.encode(why) .. '}'
    return settle(job, row, 'ungraded', verdict)
end

local function make_ready(batch)
    local kind, due, created = unpack(redis.call('HMGET', key('batch', batch), 'kind', 'due', 'created'))
    if kind then
        redis.call('ZADD', key('ready', kind), due, batch)
        redis.call('ZADD', key('since', kind), created, batch)
    end
end

local function unready(batch, kind)
    redis.call('ZREM', key('ready', kind), batch)
    redis.call('ZREM', key('since', kind), batch)
end

local function add_batch(batch, kind, recipe, members, units, payload, losses, deadline, due, created, trace)
    redis.call('HSET', key('batch', batch), 'kind', kind, 'recipe', recipe, 'members', members, 'units', units,
        'payload', payload, 'losses', losses, 'deadline', deadline, 'due', due, 'created', created, 'trace', trace)
    make_ready(batch)
    redis.call('ZADD', key('deadlines'), deadline, batch)
    redis.call('SADD', key('kinds'), kind)
    for _, member in ipairs(cjson.decode(members)) do
        redis.call('SADD', key('job', member[1], 'batches'), batch)
    end
end

local function drop_batch(batch)
    local id = key('batch', batch)
    local kind, members = unpack(redis.call('HMGET', id, 'kind', 'members'))
    if not kind then
        return
    end
    unready(batch, kind)
    redis.call('ZREM', key('leased'), batch)
    redis.call('ZREM', key('deadlines'), batch)
    redis.call('DEL', id)
    for _, member in ipairs(cjson.decode(members)) do
        redis.call('SREM', key('job', member[1], 'batches'), batch)
    end
end

local function expire(batch)
    for _, member in ipairs(cjson.decode(redis.call('HGET', key('batch', batch), 'members'))) do
        ungraded(member[1], member[2], 'deadline', 'not graded before the deadline of its job')
    end
    drop_batch(batch)
end

-- A group that is whole, or given up, becomes a batch.
local function close_group(name)
    local id = key('open', name)
    local fields = redis.call('HGETALL', id)
    if #fields == 0 then
        return
    end
    local about, members, payload = {}, {}, {}
    for i = 1, #fields, 2 do
        about[fields[i]] = fields[i + 1]
    end
    for i = 1, tonumber(about.count) do
        members[i] = about['member:' .. i]
        payload[i] = about['rollout:' .. i]
    end
    add_batch(about.batch, about.kind, about.recipe, '[' .. table.concat(members, ',') .. ']', '[' .. #members .. ']',
        '[' .. table.concat(payload, ',') .. ']', 0, about.deadline, about.due, about.created, about.trace)
    redis.call('DEL', id)
    redis.call('ZREM', key('waiting'), name)
end

local function describe(batch)
    local found = redis.call('HMGET', key('batch', batch), 'kind', 'recipe', 'members', 'units', 'payload', 'losses',
        'deadline', 'trace')
    if not found[1] then
        return false
    end
    found[7] = tostring(tonumber(found[7]) - now)
    table.insert(found, 1, batch)
    return found
end

local ops = {}

-- job, seconds to the deadline, head start in seconds, fields..., then how many batches, settled rows and waiting rows
-- there are, and these. Returns whether the job is new, and the digest of the request that made it.
function ops.create()
    local job, timeout, head_start = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
    local id = key('job', job)
    local digest = redis.call('HGET', id, 'digest')
    if digest then
        return { 0, digest }
    end
    local about = cjson.decode(ARGV[5])
    local deadline, due = now + timeout, now - head_start
    redis.call('HSET', id, 'recipe', about.recipe, 'total', about.total, 'done', 0, 'state', 'running', 'created', now,
        'deadline', deadline, 'keep', about.keep, 'owner', about.owner, 'digest', about.digest, 'ids', ARGV[6])
    redis.call('ZADD', key('jobs'), now, job)
    local at = 7
    local function read(count)
        local values = {}
        for i = 1, count do
            values[i] = ARGV[at + i - 1]
        end
        at = at + count
        return unpack(values)
    end
    local batches, settled, waiting = tonumber(about.batches), tonumber(about.settled), tonumber(about.waiting)
    for _ = 1, batches do
        local batch, kind, recipe, members, units, payload = read(6)
        add_batch(batch, kind, recipe, members, units, payload, 0, deadline, due, now, about.trace)
    end
    for _ = 1, waiting do
        local name, batch, kind, recipe, size, wait, row, rollout = read(8)
        local group = key('open', name)
        local count = redis.call('HINCRBY', group, 'count', 1)
        if count == 1 then
            redis.call('HSET', group, 'batch', batch, 'kind', kind, 'recipe', recipe, 'size', size,
                'deadline', deadline, 'due', due, 'created', now, 'trace', about.trace)
            redis.call('ZADD', key('waiting'), math.min(now + tonumber(wait), deadline), name)
        elseif tonumber(redis.call('HGET', group, 'deadline')) > deadline then
            redis.call('HSET', group, 'deadline', deadline)
            redis.call('ZADD', key('waiting'), 'LT', deadline, name)
        end
        redis.call('HSET', group, 'member:' .. count, '["' .. job .. '",' .. row .. ']', 'rollout:' .. count, rollout)
        if count >= tonumber(redis.call('HGET', group, 'size')) then
            close_group(name)
        end
    end
    for _ = 1, settled do
        local row, outcome, verdict = read(3)
        settle(job, row, outcome, verdict)
    end
    return { 1, about.digest }
end

-- worker, seconds of the lease, kinds...: the batch that is due first, or nothing.
function ops.take()
    local worker, lease = ARGV[2], tonumber(ARGV[3])
    while true do
        local first, first_due, first_kind
        for i = 4, #ARGV do
            local found = redis.call('ZRANGE', key('ready', ARGV[i]), 0, 0, 'WITHSCORES')
            if found[1] and (not first_due or tonumber(found[2]) < first_due) then
                first, first_due, first_kind = found[1], tonumber(found[2]), ARGV[i]
            end
        end
        if not first then
            return false
        end
        local found = describe(first)
        if not found then
            unready(first, first_kind)
        elseif tonumber(found[8]) <= 0 then
            expire(first)
        else
            unready(first, first_kind)
            redis.call('ZADD', key('leased'), now + lease, first)
            redis.call('HSET', key('batch', first), 'worker', worker)
            return found
        end
    end
end

-- batch: what it is, or nothing.
function ops.describe()
    return describe(ARGV[2])
end

-- batch, then job, row, outcome, verdict for each of its members: how many of them had none before.
function ops.settle()
    local fresh = 0
    for i = 3, #ARGV, 4 do
        fresh = fresh + settle(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
    end
    drop_batch(ARGV[2])
    return fresh
end

-- worker, seconds of the lease, what it says of itself, batches...: those that are no longer its own.
function ops.beat()
    local worker, lease, gone = ARGV[2], tonumber(ARGV[3]), {}
    redis.call('HSET', key('workers'), worker, ARGV[4])
    redis.call('ZADD', key('workers', 'seen'), now, worker)
    for i = 5, #ARGV do
        if redis.call('HGET', key('batch', ARGV[i]), 'worker') == worker
            and redis.call('ZSCORE', key('leased'), ARGV[i]) then
            redis.call('ZADD', key('leased'), now + lease, ARGV[i])
        else
            gone[#gone + 1] = ARGV[i]
        end
    end
    return gone
end

-- worker: it ends. What it holds is ready again, and it is no longer listed.
function ops.leave()
    local worker = ARGV[2]
    for _, batch in ipairs(redis.call('ZRANGE', key('leased'), 0, -1)) do
        local id = key('batch', batch)
        if redis.call('HGET', id, 'worker') == worker then
            redis.call('ZREM', key('leased'), batch)
            redis.call('HDEL', id, 'worker')
            make_ready(batch)
        end
    end
    redis.call('HDEL', key('workers'), worker)
    redis.call('ZREM', key('workers', 'seen'), worker)
end

-- worker: it was found dead, so that its leases need not be waited for.
function ops.bury()
    for _, batch in ipairs(redis.call('ZRANGE', key('leased'), 0, -1)) do
        if redis.call('HGET', key('batch', batch), 'worker') == ARGV[2] then
            redis.call('ZADD', key('leased'), 0, batch)
        end
    end
    redis.call('HDEL', key('workers'), ARGV[2])
    redis.call('ZREM', key('workers', 'seen'), ARGV[2])
end

-- seconds of a lease: what is overdue is put right. Returns the batches that lost their worker more than once. These stay
-- leased, to nobody, until they are halved, ready again or given up: whoever asked may die before it has done so.
function ops.reconcile()
    local lease, lost = tonumber(ARGV[2]), {}
    local last = tonumber(redis.call('GET', key('tick')) or 0)
    redis.call('SET', key('tick'), now)
    for _, name in ipairs(redis.call('ZRANGEBYSCORE', key('waiting'), '-inf', now, 'LIMIT', 0, 500)) do
        close_group(name)
    end
    for _, batch in ipairs(redis.call('ZRANGEBYSCORE', key('deadlines'), '-inf', now, 'LIMIT', 0, 500)) do
        expire(batch)
    end
    if now - last > lease / 2 then
        -- Redis was away, so nobody could renew: no worker is to blame, and all get another lease.
        for _, batch in ipairs(redis.call('ZRANGEBYSCORE', key('leased'), '(0', now + lease)) do
            redis.call('ZADD', key('leased'), now + lease, batch)
        end
    end
    for _, batch in ipairs(redis.call('ZRANGEBYSCORE', key('leased'), '-inf', now, 'LIMIT', 0, 500)) do
        local id = key('batch', batch)
        -- Without a worker it is one that was returned here before, to somebody who may have died since.
        local losses = redis.call('HINCRBY', id, 'losses', redis.call('HDEL', id, 'worker'))
        if losses == 1 then
            redis.call('ZREM', key('leased'), batch)
            make_ready(batch)
        else
            redis.call('ZADD', key('leased'), now + lease, batch)
            lost[#lost + 1] = batch
        end
    end
    local gone = redis.call('ZRANGEBYSCORE', key('workers', 'seen'), '-inf', now - 3 * lease)
    for _, worker in ipairs(gone) do
        redis.call('HDEL', key('workers'), worker)
        redis.call('ZREM', key('workers', 'seen'), worker)
    end
    return lost
end

-- batch, number of parts, then name, members, units, payload of each: it is replaced by its parts, or by nothing new
-- when somebody else has dealt with it.
function ops.split()
    local id = key('batch', ARGV[2])
    local found = redis.call('HMGET', id, 'kind', 'recipe', 'deadline', 'due', 'created', 'trace')
    if not found[1] then
        return 0
    end
    drop_batch(ARGV[2])
    for i = 3, #ARGV, 4 do
        add_batch(ARGV[i], found[1], found[2], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], 1, found[3], found[4], found[5],
            found[6])
    end
    return 1
end

-- batch: it is ready again, unless somebody else has dealt with it and a worker has it.
function ops.again()
    if redis.call('HEXISTS', key('batch', ARGV[2]), 'worker') == 0 then
        redis.call('ZREM', key('leased'), ARGV[2])
        make_ready(ARGV[2])
    end
end

-- job: what has no verdict yet is cancelled.
function ops.cancel()
    local job = ARGV[2]
    local id = key('job', job)
    local total, state = unpack(redis.call('HMGET', id, 'total', 'state'))
    if not total then
        return 0
    end
    if state ~= 'running' then
        return 1
    end
    redis.call('HSET', id, 'state', 'cancelled')
    local batches = redis.call('SMEMBERS', id .. ':batches')
    for row = 0, tonumber(total) - 1 do
        ungraded(job, row, 'cancelled', 'its job was cancelled')
    end
    for _, batch in ipairs(batches) do
        local members = redis.call('HGET', key('batch', batch), 'members')
        local others = false
        for _, member in ipairs(members and cjson.decode(members) or {}) do
            others = others or member[1] ~= job
        end
        if not others then
            drop_batch(batch)
        end
    end
    return 1
end

-- What waits: kind, batches and the age in seconds of the oldest for each; then batches under way, open groups, running
-- jobs and dead letters.
function ops.depths()
    local out = {}
    for _, kind in ipairs(redis.call('SMEMBERS', key('kinds'))) do
        local oldest = redis.call('ZRANGE', key('since', kind), 0, 0, 'WITHSCORES')[2]
        out[#out + 1] = { kind, redis.call('ZCARD', key('ready', kind)), tostring(oldest and now - tonumber(oldest) or 0) }
    end
    return { out, redis.call('ZCARD', key('leased')), redis.call('ZCARD', key('waiting')),
        redis.call('ZCARD', key('jobs')), redis.call('XLEN', key('dead')) }
end

return ops[op]()
