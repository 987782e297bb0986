// Package vm boots a Debian with systemd and control groups of version 2 alone in an emulated
// machine, and has what this host may not have tried there: the unit of the package, the
// engines' suites, limits, freezes, a normal user to whom systemd delegates, the demo.
//
// The machine is emulated whole (QEMU, TCG), so that it needs nothing of the host's
// processor. Its clock counts instructions: a host that is busy makes it slower, but no
// time-out in it shorter.
//
// Three parts: the tests here make the disks, boot and judge; test/vm/init is the first
// process of the guest's kernel; test/vm/prove answers the checks inside, in one boot, and
// test/vm/report is how it tells them.
//
// A disk is an image that the machine has, made once of what its key says and
// kept in .cofferdam/vm; the payload is the disk with the programs that are tried.
package vm
