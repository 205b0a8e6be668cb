"""Machine code read as text: which instructions a kernel runs, of what kinds, and their cycles by LLVM's analyzer."""
