# Everything needs only Python 3.11 or newer and make.
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

