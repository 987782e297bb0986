// Package cgroup makes the control group of one sandbox: the memory, cpu and
// pids limits around all of its host processes, what they use, and whether the
// kernel killed for memory. It makes those of the gateway, of the keeper and of
// the programs that work on a sandbox's files as well (Ensure, EnsureStage).
//
// On version 1 each of the kernel's controllers (memory, cpu, pids) has a hierarchy of groups of
// its own; on version 2 one hierarchy has all; a hybrid host has both, each controller being in one
// of them. The parent is the group under which all of an installation's groups are made. A share is
// a group below it for the sandboxes of one owner, so that the processors' time is divided between
// owners and not by how many sandboxes each has, and Balance has those that use little go first.
//
// One use, end to end: New finds out which controllers can be used and why the
// others can't, Create makes a group, its Joins are the files into which a
// starter's pid is written before exec, Stats, OOMKills and Throttled read it, Kill and
// Remove end it. Open finds it again after a restart.
package cgroup
