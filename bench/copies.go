package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// busyPython has as much in memory as an agent's interpreter has: about 20 MB
// of image.
const busyPython = "import asyncio, ssl, sqlite3, json, xml.dom.minidom, email, http.client, unittest, decimal, ctypes, multiprocessing, time\nopen('/tmp/up','w').close()\nwhile True: time.sleep(3600)"

// busy makes a sandbox with such an interpreter at rest.
func (l *life) busy(ctx context.Context) (wireBox, error) {
	box, err := l.wire.create(ctx, "cold")
	if err != nil {
		return box, err
	}
	return box, l.wire.run(ctx, box, "/bin/bash", "-c",
		"nohup python3 -c \"$0\" >/dev/null 2>&1 & until test -e /tmp/up; do sleep 0.05; done", busyPython)
}

// copies snapshots and forks a sandbox.
func (l *life) copies(ctx context.Context) error {
	box, err := l.busy(ctx)
	if err != nil {
		return err
	}
	var snapshots, restores, forks, four, cpu sample
	n := l.rounds(forkRounds)
	for i := range n + 1 {
		l.progress.round("snapshots and forks", i, n)
		began := time.Now()
		id, err := l.wire.snapshot(ctx, box)
		if err != nil {
			return err
		}
		took := time.Since(began)
		restored, err := l.restored(ctx, id)
		if err := errors.Join(err, l.wire.dropSnapshot(ctx, id)); err != nil {
			return err
		}
		before := machineCPU()
		one, err := l.forked(ctx, box, 1)
		if err != nil {
			return err
		}
		spent := machineCPU() - before
		more, err := l.forked(ctx, box, 4)
		if err != nil {
			return err
		}
		if i > 0 {
			snapshots.add(took)
			restores.add(restored)
			forks.add(one)
			cpu.add(spent)
			four.add(more)
		}
	}
	l.table.add(figure("snapshot of a sandbox with python at rest", unitTime, snapshots))
	l.table.add(figure("  a sandbox of it, to its first answer", unitTime, restores))
	l.table.add(figure("fork, to the copy's first answer", unitTime, forks).
		target(fmt.Sprintf("<= %.0f", forkTarget), forks.median() <= forkTarget))
	l.table.add(figure("  CPU of the whole machine meanwhile", unitTime, cpu))
	l.table.add(figure("  of four, to the last one's", unitTime, four))
	return errors.Join(l.forkOfFifty(ctx, box), l.wire.kill(ctx, box))
}

func (l *life) forkOfFifty(ctx context.Context, box wireBox) error {
	l.progress.say("a fork of fifty")
	took, err := l.forked(ctx, box, crowd)
	if err != nil {
		return err
	}
	l.table.add(figure("  of 50, to the last one's", unitTime, sample{float64(took) / float64(time.Millisecond)}))
	return nil
}

// restored makes a sandbox of a snapshot, has it run a command, and ends it.
func (l *life) restored(ctx context.Context, snapshot string) (time.Duration, error) {
	began := time.Now()
	box, err := l.wire.createOf(ctx, snapshot, "cold")
	if err != nil {
		return 0, err
	}
	err = l.wire.run(ctx, box, "/bin/true")
	took := time.Since(began)
	return took, errors.Join(err, l.wire.kill(ctx, box))
}

// forked makes copies, has each run a command, and ends them.
func (l *life) forked(ctx context.Context, box wireBox, count int) (time.Duration, error) {
	began := time.Now()
	boxes, err := l.wire.fork(ctx, box, count)
	for _, one := range boxes {
		err = errors.Join(err, l.wire.run(ctx, one, "/bin/true"))
	}
	took := time.Since(began)
	for _, one := range boxes {
		err = errors.Join(err, l.wire.kill(ctx, one))
	}
	return took, err
}

// pauses sends a sandbox to disk and back.
func (l *life) pauses(ctx context.Context) error {
	box, err := l.busy(ctx)
	if err != nil {
		return err
	}
	var pauses, resumes sample
	n := l.rounds(forkRounds)
	for i := range n + 1 {
		l.progress.round("pauses", i, n)
		began := time.Now()
		if err := l.wire.pause(ctx, box); err != nil {
			return err
		}
		paused := time.Since(began)
		began = time.Now()
		if box, err = l.wire.resume(ctx, box); err != nil {
			return err
		}
		if err := l.wire.run(ctx, box, "/bin/true"); err != nil {
			return err
		}
		if i > 0 {
			pauses.add(paused)
			resumes.add(time.Since(began))
		}
	}
	l.table.add(figure("pause of a sandbox with python at rest", unitTime, pauses))
	l.table.add(figure("  resume, to the first answer", unitTime, resumes))
	return l.wire.kill(ctx, box)
}

// together does the same with fifty sandboxes at once: snapshots, pauses, resumes.
func (l *life) together(ctx context.Context) error {
	boxes := make([]wireBox, crowd)
	for i := range boxes {
		l.progress.round("sandboxes for what fifty do at once", i, crowd)
		var err error
		if boxes[i], err = l.wire.create(ctx, "cold"); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		what string
		do   func(i int) error
	}{
		{"snapshots, 50 at once, of sandboxes at rest", func(i int) error {
			_, err := l.wire.snapshot(ctx, boxes[i])
			return err
		}},
		{"pauses, 50 at once", func(i int) error { return l.wire.pause(ctx, boxes[i]) }},
		{"resumes, 50 at once, to the first answer", func(i int) (err error) {
			if boxes[i], err = l.wire.resume(ctx, boxes[i]); err != nil {
				return err
			}
			return l.wire.run(ctx, boxes[i], "/bin/true")
		}},
		{"ends, 50 at once", func(i int) error { return l.wire.kill(ctx, boxes[i]) }},
	} {
		l.progress.say("%s", one.what)
		took, err := atOnce(crowd, func(i int) (time.Duration, error) {
			began := time.Now()
			err := one.do(i)
			return time.Since(began), err
		})
		if err != nil {
			return err
		}
		l.table.add(figure(one.what, unitTime, took))
	}
	return nil
}

// idleLook is how long idle sandboxes are looked at.
const idleLook = 10 * time.Second

// idle looks at what a full pool costs.
func (l *life) idle(ctx context.Context) error {
	if err := l.awaitPool(ctx, poolSize); err != nil {
		return err
	}
	roles, err := l.daemon.roles()
	if err != nil {
		return err
	}
	family, err := descendants(roles["keeper"])
	if err != nil {
		return err
	}
	var memory float64
	for _, pid := range family {
		pss, _, err := memoryOf(pid)
		if err != nil {
			return err
		}
		memory += pss
	}
	before := cpuOf(family)
	select {
	case <-time.After(idleLook):
	case <-ctx.Done():
		return ctx.Err()
	}
	spent := cpuOf(family) - before
	each := memory / poolSize
	l.table.add(figure("an idle sandbox of the pool", unitMemory, sample{each}))
	l.table.add(figure("  such sandboxes per GiB", unitCount, sample{1073.741824 / each}))
	l.table.add(figure("  CPU of all of them in ten seconds", unitTime, sample{float64(spent) / float64(time.Millisecond)}).target("0", spent == 0))
	return nil
}

// awaitPool returns when the pool has so many sandboxes ready.
func (l *life) awaitPool(ctx context.Context, size int) error {
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	for {
		ready, err := l.poolReady(ctx)
		if err != nil {
			return err
		}
		if ready >= size {
			return nil
		}
		select {
		case <-time.After(daemonPoll):
		case <-ctx.Done():
			return fmt.Errorf("the pool has %d of %d sandboxes; the daemon's log ends with:\n%s", ready, size, l.daemon.logTail())
		}
	}
}

// descendants are all processes that come of one.
func descendants(of int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if fields := statOf(pid); err == nil && fields != nil {
			children[int(fields[1])] = append(children[int(fields[1])], pid)
		}
	}
	family := slices.Clone(children[of])
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family, nil
}

// statOf are the numbers of a process's stat line after its name and state:
// index 1 is the parent; nil if it has ended.
func statOf(pid int) []int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	var numbers []int64
	for field := range bytes.FieldsSeq(text[bytes.LastIndexByte(text, ')')+1:]) {
		n, _ := strconv.ParseInt(string(field), 10, 64) // the state is no number
		numbers = append(numbers, n)
	}
	return numbers
}

// tick is the kernel's unit of CPU time.
const tick = 10 * time.Millisecond

// cpuOf is what processes have used.
func cpuOf(pids []int) time.Duration {
	var ticks int64
	for _, pid := range pids {
		if fields := statOf(pid); len(fields) > 12 {
			ticks += fields[11] + fields[12]
		}
	}
	return time.Duration(ticks) * tick
}

// machineCPU is what the whole machine has used, idling and waiting left out.
func machineCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var ticks int64
	for i, field := range strings.Fields(line)[1:] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err == nil && i != 3 && i != 4 && i < 8 { // idle, iowait; the guests' share is in user
			ticks += n
		}
	}
	return time.Duration(ticks) * tick
}

// poolReady asks the operator's socket how many sandboxes the pool has ready.
func (l *life) poolReady(ctx context.Context) (int, error) {
	return metric(ctx, l.daemon.paths, "cofferdam_pool_ready")
}

// metric reads one number of the daemon's own.
func metric(ctx context.Context, paths config.Paths, name string) (int, error) {
	resp, err := adminGet(ctx, paths, "/metrics")
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fmt.Errorf("the daemon does not tell of %s", name)
}

// adminGet asks the operator's socket.
func adminGet(ctx context.Context, paths config.Paths, path string) (*http.Response, error) {
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", paths.AdminSocket())
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://admin"+path, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}
