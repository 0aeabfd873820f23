"""The emulator: any Metal source compiled by clang and run as Metal would run it, every fault reported."""
