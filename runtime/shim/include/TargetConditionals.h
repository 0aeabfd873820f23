// Metal's own header: all of it is precompiled, see ../emulator/metal.h.
