"""Solution of loop equations: closed forms, blocks of Newton's method, nearest points."""
