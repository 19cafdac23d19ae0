"""What fits of every kind gave when they were last looked at: `python -m tests.goldens` takes them anew."""
