"""From a Program to numbers: devices, argument checks and the cache of compiled pipelines."""
