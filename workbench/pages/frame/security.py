"""What a browser may do with our pages: run our scripts alone, ask our server alone, in our frames.

Sent with every page. A page's own scripts bear a number of that answer (a nonce), so that a script
which came in with text from outside does not run even where it was taken for markup.
"""

import secrets

from tornado.httputil import HTTPHeaders

NONCE = "@nonce@"  # stands for the number in a page's head, which is kept for all pages
POLICY = (
    "default-src 'self'",
    # Panel makes its templates into functions (unsafe-eval); no text from outside becomes one.
    f"script-src 'self' 'nonce-{NONCE}' 'unsafe-eval' blob:",
    "style-src 'self' 'unsafe-inline'",  # components style what they draw as they draw it
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "worker-src 'self' blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'self'",
)


def number() -> str:
    """A nonce, for one answer."""
    return secrets.token_urlsafe(16)


def secure(headers: HTTPHeaders, nonce: str = "") -> None:
    """Put the policy on an answer, unless it has one of its own; `nonce` of its scripts."""
    policy = "; ".join(POLICY).replace(f"'nonce-{NONCE}'", f"'nonce-{nonce}'" if nonce else "")
    headers.setdefault("Content-Security-Policy", policy)
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("X-Frame-Options", "SAMEORIGIN")  # for those that know no frame-ancestors
    headers.setdefault("Referrer-Policy", "same-origin")
