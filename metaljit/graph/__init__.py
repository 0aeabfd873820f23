"""Graphs: functions of arrays, traced and compiled as a whole."""
