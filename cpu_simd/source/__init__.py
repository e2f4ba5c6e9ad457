"""Source frames: conversion, energies, error of what is shown, on a CPU."""
