"""Machine code read as text: which instructions a kernel runs, of what kinds, and what LLVM's analyser says of them."""
