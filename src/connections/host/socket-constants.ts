// Of Linux, the same on all architectures that we run on.
export const familyUnix = 1;
export const typeStream = 1;
export const typeDatagram = 2;
export const closeOnExec = 0o2000000;
export const nonBlocking = 0o4000;
export const doNotWait = 0x40;
export const noSignal = 0x4000;
