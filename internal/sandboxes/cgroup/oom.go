package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// OOMWatch tells of a group that somebody else may remove whether its memory was full.
type OOMWatch struct {
	group *Group
	event int // a descriptor that counts, under version 1; 0 under 2
	count uint64
}

// WatchOOM begins. Under version 2 nothing is known of a group that is gone.
func (g *Group) WatchOOM() (*OOMWatch, error) {
	w := &OOMWatch{group: g}
	p, ok := g.places[Memory]
	if !ok || p.version != 1 {
		return w, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	of, err := os.Open(filepath.Join(p.parent, "memory.oom_control"))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	defer of.Close()
	line := strconv.Itoa(fd) + " " + strconv.Itoa(int(of.Fd()))
	if err := writeControl(filepath.Join(p.parent, "cgroup.event_control"), line); err != nil {
		return nil, errors.Join(fmt.Errorf("watch the memory of %s: %w", p.parent, err), unix.Close(fd))
	}
	w.event = fd
	return w, nil
}

// Happened tells whether the kernel has killed for memory, also of a group that is gone:
// the kernel counts the group's end as well.
func (w *OOMWatch) Happened() bool {
	if kills, err := w.group.OOMKills(); err == nil {
		return kills > 0
	}
	if w.event == 0 {
		return false
	}
	var counted [8]byte
	if n, err := unix.Read(w.event, counted[:]); err == nil && n == len(counted) { // or nothing happened since
		w.count += binary.NativeEndian.Uint64(counted[:])
	}
	return w.count > 1
}

// Close ends the watch.
func (w *OOMWatch) Close() error {
	if w.event == 0 {
		return nil
	}
	return unix.Close(w.event)
}
