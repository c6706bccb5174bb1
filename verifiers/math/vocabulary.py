"""The vocabulary of the tokenizer: which LaTeX commands and plain words mean what."""

from __future__ import annotations

FUNCTIONS = {
    name: name
    for name in """sin cos tan cot sec csc sinh cosh tanh coth sech csch exp ln log lg gcd lcm max min floor ceil
    gamma arg det abs sign""".split()
} | {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsec": "asec", "arccsc": "acsc",
    "asin": "asin", "acos": "acos", "atan": "atan", "acot": "acot", "asec": "asec", "acsc": "acsc",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
    "arsinh": "asinh", "arcosh": "acosh", "artanh": "atanh", "cosec": "csc", "tg": "tan", "ctg": "cot", "arctg": "atan",
    "sgn": "sign", "Re": "re", "Im": "im", "Abs": "abs", "log10": "lg", "sqrt": "sqrt", "cbrt": "cbrt",
    "binomial": "binom", "binom": "binom", "factorial": "factorial", "floor": "floor", "ceiling": "ceil",
    "root": "root", "GCD": "gcd", "LCM": "lcm", "Gamma": "gamma",
}  # fmt: skip
"""Spelled with or without a backslash. `gamma` and `Gamma` need their parenthesis (the tokenizer checks)."""

PLAIN_ONLY = frozenset("sqrt cbrt binomial factorial ceiling root floor ceil abs Abs".split())
"""Functions that, without a backslash, need a parenthesis to be one."""

GREEK = frozenset(
    """alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma
    varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar
    aleph partial nabla imath jmath star ast bullet clubsuit diamondsuit heartsuit spadesuit triangle square Box prime
    dagger""".split()
)

SKIPPED = frozenset(
    """displaystyle textstyle scriptstyle scriptscriptstyle left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr
    Biggl Biggr bigm middle quad qquad limits nolimits rm bf it sf tt cal mit tiny scriptsize footnotesize small
    normalsize large Large LARGE huge Huge boldmath thinspace medspace thickspace negthinspace hfill hfil vphantom
    smallskip noindent centering nonumber notag bfseries itshape allowbreak enspace relax null protect""".split()
)
"""Commands without meaning for the value."""

SKIPPED_WITH_ARGUMENT = frozenset("color hspace vspace hphantom phantom label tag kern rule textcolor colorbox".split())
"""Commands whose first braced argument has no meaning either; what follows it has."""

TRANSPARENT = frozenset(
    """boxed fbox framebox mathbf boldsymbol bm mathit mathrm mathsf mathtt mathnormal mathcal mathscr mathfrak
    underline textbf textit textrm textsf texttt textnormal text mbox hbox textup emph operatorname mathop ensuremath
    vec hat widehat tilde widetilde overrightarrow underbrace overbrace bold uline mathstrut smash mathopen
    mathclose mathord mathrel mathbin""".split()
)
"""Commands that stand for their argument."""

TEXT = frozenset("text mbox hbox textbf textit textrm textsf texttt textnormal textup emph mathrm operatorname".split())
"""Transparent commands whose argument is read as words."""

OPERATORS = {
    "choose": "choose", "over": "over",
    "times": "*", "cdot": "*", "ast": "*", "div": "/", "pm": "pm", "mp": "mp", "le": "<=", "leq": "<=",
    "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "lt": "<", "gt": ">",
    "ne": "!=", "neq": "!=", "approx": "~", "sim": "~", "simeq": "~", "approxeq": "~", "equiv": "==", "cong": "~",
    "in": "in", "notin": "notin", "cup": "cup", "cap": "cap", "setminus": "\\", "backslash": "\\",
    "smallsetminus": "\\", "mod": "mod", "bmod": "mod", "pmod": "pmod", "mid": "|", "vert": "|", "lvert": "|",
    "rvert": "|", "Vert": "||", "lVert": "||", "rVert": "||", "langle": "<<", "rangle": ">>", "lfloor": "lfloor",
    "rfloor": "rfloor", "lceil": "lceil", "rceil": "rceil", "lbrace": "\\{", "rbrace": "\\}", "lbrack": "[",
    "rbrack": "]", "lparen": "(", "rparen": ")", "subset": "subset", "subseteq": "subset", "colon": ":", "ratio": ":",
    "wedge": "and", "vee": "or", "land": "and", "lor": "or", "to": "to", "rightarrow": "to", "mapsto": "to",
    "implies": "to", "Rightarrow": "to", "iff": "to", "Leftrightarrow": "to", "longrightarrow": "to", "ldots": "...",
    "dots": "...", "cdots": "...", "dotsc": "...", "angle": "angle", "measuredangle": "angle", "triangle": "angle",
    "circ": "circ", "degree": "circ", "euro": "euro", "pounds": "pounds", "yen": "yen", "rupee": "rupee",
    "textdollar": "$", "prime": "'",
}  # fmt: skip

CONSTANTS = {"pi": "pi", "infty": "inf", "infinity": "inf", "inf": "inf", "oo": "inf", "Infinity": "inf", "Pi": "pi"}
"""Constants spelled as words; a plain `Pi` is the number, `\\Pi` is a letter (`GREEK` is asked first)."""

DOMAINS = {"R": "R", "Z": "Z", "N": "N", "Q": "Q", "C": "C", "Reals": "R"}
NAMED_SETS = frozenset({"emptyset", "varnothing"})

SMALL_WORDS = frozenset(
    """is no yes on odd even none true false not all any one two day dne if so we he it of at by in as an am be do go
    up us or and the for are was has had nor but nan net per via""".split()
)
"""Short words that are never read as a product of letters."""
