package microvm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// writeMachine has the machine stand still and writes it to a folder: its memory and all its disks,
// or the root's disk alone. The machine stands still afterwards, too.
func writeMachine(ctx context.Context, c controls, b bundle, p stagePlan, dir string, memory bool) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	disks := imageRecipe{Disks: p.Disks[:1]}
	if memory {
		if err := c.Write(ctx, b, p.Machine, dir); err != nil {
			return err
		}
		disks.Disks = p.Disks
		for n := range p.Images {
			disks.Images = append(disks.Images, n)
		}
	}
	for to, from := range disks.packedDisks() {
		if err := packDisk(filepath.Join(b.ownDir(), from), filepath.Join(dir, to)); err != nil {
			return err
		}
	}
	// One that was killed meanwhile has ended, whatever was written of it.
	return c.Stop(ctx)
}

// drainWait bounds how long what the machine has said is on its way to the keeper.
const drainWait = 5 * time.Second

// drainOutput waits until the keeper has read what the machine had said before it stood still: what
// is written down of the machine has not been said, and would be said again.
func drainOutput(ctx context.Context, b bundle, c controls) error {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	channel, err := channelOf(b)
	if err != nil {
		return err
	}
	defer channel.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for empty := 0; empty < drainLooks; {
		queued, err := unix.IoctlGetInt(int(channel.Fd()), unix.TIOCOUTQ)
		if err != nil {
			return fmt.Errorf("look at the channel: %w", err)
		}
		if empty++; queued > 0 {
			empty = 0
		}
		// Its answer comes after what it did with a channel that takes more.
		if err := c.Stop(ctx); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.Wrap(fault.ErrUnavailable, ctx.Err(), "what the sandbox says is not read")
		}
	}
	return nil
}

// drainLooks is how often in a row there must be nothing on the way.
const drainLooks = 3

// channelOf is the monitor's end of the channel.
func channelOf(b bundle) (*os.File, error) {
	all, err := b.processes()
	if err != nil {
		return nil, err
	}
	id := all[0]
	process, err := unix.PidfdOpen(id.Pid, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(process) //nolint:errcheck // nothing was written to it
	if !id.Is() {
		return nil, fault.New(fault.ErrConflict, "the monitor has ended")
	}
	fd, err := unix.PidfdGetfd(process, 1, 0)
	if err != nil {
		return nil, fmt.Errorf("look at the channel: %w", err)
	}
	return os.NewFile(uintptr(fd), "channel"), nil
}
