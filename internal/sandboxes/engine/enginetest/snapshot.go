package enginetest

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// testSnapshot is the control "snapshot": a copy goes on where its source was,
// the source does as if nothing had been, and what can't be restored whole does
// not start.
func testSnapshot(t *testing.T, s *Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *Subject){
		"the source goes on":     testSourceGoesOn,
		"a copy goes on":         testCopyGoesOn,
		"in the middle of much":  testCopyInTheMiddle,
		"the limits of a copy":   testLimitsOfACopy,
		"copies at once":         testCopiesAtOnce,
		"a copy of a copy":       testCopyOfACopy,
		"a frozen copy":          testFrozenCopy,
		"a damaged memory image": testDamagedSnapshot(engine.ContentsMemory),
		"another spec":           testSnapshotOfAnother,
		"a full disk":            testSnapshotFullDisk,
		"ended, or ending":       testSnapshotEnding,
		"refused":                testSnapshotRefused,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// testFilesSnapshot is the control "snapshot-files": a copy has what its source had
// written, the source does as if nothing had been, and what is not whole does not start.
func testFilesSnapshot(t *testing.T, s *Subject) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *Subject){
		"files":                  testFilesOnly,
		"a damaged files image":  testDamagedSnapshot(engine.ContentsFiles),
		"the source of files":    testSourceOfFiles,
		"a full disk, files":     testFilesFullDisk,
		"ending, files":          testFilesEnding,
		"what files are refused": testFilesRefused,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// testSourceGoesOn: a command that writes without a pause, one that waits for
// input, and a connection to the host, over several snapshots.
func testSourceGoesOn(t *testing.T, s *Subject) {
	t.Helper()
	const lines = 600_000
	far := s.uplink(t)
	b := s.createBox(t, nil)
	b.configureNames("held.example")
	client := b.startCommand("client", channel.Exec{ID: "client", Dir: "/", Argv: []string{
		"/bin/bash", "-c", `exec 3<>/dev/tcp/127.64.0.1/443; echo question >&3; read -t 20 line <&3; echo "got $line"`,
	}})
	defer client.Close()
	stream := <-far
	count := b.startCommand("count", counting("count"))
	defer count.Close()
	much := b.startCommand("much", shellExec("much", "seq 1 "+strconv.Itoa(lines)))
	defer much.Close()
	first := b.readUntil(much, "\n1000\n")
	collected := make(chan result, 1)
	go func() { collected <- b.collect(much) }()
	for i := range 3 {
		b.typeLine(count, "s")
		b.readUntil(count, "s is "+strconv.Itoa(i+1)+"\n")
		b.snapshot(engine.ContentsMemory)
	}
	b.snapshot(engine.ContentsFiles)
	got := first + (<-collected).out
	if want := strings.Count(got, "\n"); want != lines || !strings.HasSuffix(got, "\n"+strconv.Itoa(lines)+"\n") {
		t.Errorf("%d lines of output instead of %d", want, lines)
	}
	if err := channel.NewWriter(count).WriteFrame(channel.FrameStdin, nil); err != nil {
		t.Fatal(err)
	}
	if r := b.collect(count); r.out != "over at 3\n" || r.exit.Code != 0 {
		t.Errorf("the counter: %+v", r)
	}
	if _, err := stream.Write([]byte("answer\n")); err != nil {
		t.Fatal(err)
	}
	if r := b.collect(client); r.out != "got answer\n" {
		t.Errorf("the client: %+v", r)
	}
}

// testCopyGoesOn: memory, files of all kinds, the clock, identity; source and
// copy go different ways afterwards.
func testCopyGoesOn(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	b.runScript("echo home > /home/agent/f; echo tmp > /tmp/f; echo shm > /dev/shm/f; mkdir /home/agent/d")
	count := b.startCommand("count", counting("count"))
	defer count.Close()
	b.typeLine(count, "source")
	b.readUntil(count, "source is 1\n")
	dir := b.snapshot(engine.ContentsMemory)
	c := b.restore(t, dir, "k")
	copied := c.adoptCommand("count")
	c.typeLine(copied, "copy")
	c.readUntil(copied, "copy is 2\n")
	b.typeLine(count, "source")
	b.readUntil(count, "source is 2\n")
	b.typeLine(count, "source")
	b.readUntil(count, "source is 3\n")
	if got := c.runScript("cat /home/agent/f /tmp/f /dev/shm/f; ls -d /home/agent/d"); got != "home\ntmp\nshm\n/home/agent/d" {
		t.Errorf("the copy's files: %q", got)
	}
	c.runScript("echo copy > /home/agent/f; rmdir /home/agent/d; echo copy > /tmp/f")
	if got := b.runScript("cat /home/agent/f /tmp/f; ls -d /home/agent/d"); got != "home\ntmp\n/home/agent/d" {
		t.Errorf("the source's files after the copy's writes: %q", got)
	}
	if err := channel.NewWriter(copied).WriteFrame(channel.FrameStdin, nil); err != nil {
		t.Fatal(err)
	}
	if r := c.collect(copied); r.out != "over at 2\n" || r.exit.Code != 0 {
		t.Errorf("the copy's counter: %+v", r)
	}
	if err := c.Keeper.Adopt(t.Context(), c.id, keeper.Command{ID: "unheard-of"}, keeper.ExecOptions{}); err == nil {
		t.Error("a command was adopted that is not there")
	}
	if err := b.inst.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if got := c.runScript("cat /home/agent/f"); got != "copy" {
		t.Errorf("the copy after its source's end: %q", got)
	}
}

// testCopyInTheMiddle: the host is writing to the guest, and the guest to the
// host, without a pause; a client in the guest waits for an answer, which in the
// copy never comes.
func testCopyInTheMiddle(t *testing.T, s *Subject) {
	t.Helper()
	far := s.uplink(t)
	b := s.createBox(t, nil)
	b.configureNames("held.example")
	client := b.startCommand("client", channel.Exec{ID: "client", Dir: "/", Argv: []string{
		"/bin/bash", "-c", `exec 3<>/dev/tcp/127.64.0.1/443; echo question >&3; read line <&3; echo "got '$line'"`,
	}})
	defer client.Close()
	stream := <-far
	sink := b.startCommand("sink", shellExec("sink", "cat > /dev/null; echo sunk"))
	source := b.startCommand("source", shellExec("source", "yes"))
	var flows sync.WaitGroup
	flows.Go(func() {
		out, buf := channel.NewWriter(sink), make([]byte, channel.MaxPayload)
		var err error
		for err == nil {
			err = out.WriteFrame(channel.FrameStdin, buf)
		}
	})
	flows.Go(func() {
		in := channel.NewReader(source)
		for {
			if _, _, err := in.ReadFrame(); err != nil {
				return
			}
		}
	})
	for i := range 3 {
		dir := b.snapshot(engine.ContentsMemory)
		c := b.restore(t, dir, "k"+strconv.Itoa(i))
		c.readUntil(c.adoptCommand("source"), "y\ny\n")
		sunk := c.adoptCommand("sink")
		if err := channel.NewWriter(sunk).WriteFrame(channel.FrameStdin, nil); err != nil {
			t.Fatal(err)
		}
		if r := c.collect(sunk); r.out != "sunk\n" || r.exit.Code != 0 {
			t.Errorf("the copy's reader of much: %+v", r)
		}
		if r := c.collect(c.adoptCommand("client")); r.out != "got ''\n" {
			t.Errorf("the copy's client: %+v", r)
		}
	}
	if _, err := stream.Write([]byte("answer\n")); err != nil {
		t.Error(err)
	}
	if r := b.collect(client); r.out != "got 'answer'\n" {
		t.Errorf("the source's client: %+v", r)
	}
	_ = sink.Close()
	_ = source.Close()
	flows.Wait()
}

// testLimitsOfACopy: it is in a control group of its own, with limits that may be
// lower, and has no more network than its source.
func testLimitsOfACopy(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	dir := b.snapshot(engine.ContentsMemory)
	b.spec.Limits.MemoryBytes = 128 << 20
	c := b.restore(t, dir, "k")
	const interfaces = "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | cut -d: -f1"
	if source, copied := b.runScript(interfaces), c.runScript(interfaces); source != copied {
		t.Errorf("the copy has the interfaces %q, its source %q", copied, source)
	}
	caps, err := s.Engine.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(caps.Enforces, engine.ControlMemory) {
		return
	}
	c.execAs("", "/bin/sh", "-c", "head -c 1000000000 /dev/zero | tail >/dev/null")
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	if exit, err := c.inst.Wait(ctx); err != nil || !exit.OOM {
		t.Errorf("a copy past its memory: %+v, %v", exit, err)
	}
	if got := b.runScript("echo on"); got != "on" {
		t.Errorf("the source: %q", got)
	}
}

// testCopiesAtOnce: each has what the source had written and deleted, 50 MB of
// it, and its own of what it writes.
func testCopiesAtOnce(t *testing.T, s *Subject) {
	t.Helper()
	const copies = 4
	b := s.createBox(t, func(spec *engine.Spec) { spec.Limits.DiskBytes = 256 << 20 })
	b.runScript("dd if=/dev/urandom of=/home/agent/big bs=1M count=50 2>/dev/null; echo x > /home/agent/gone; sync")
	sum := b.runScript("md5sum < /home/agent/big")
	b.runScript("rm /home/agent/gone /home/agent/lower")
	dir := b.snapshot(engine.ContentsMemory)
	var all sync.WaitGroup
	for i := range copies {
		all.Go(func() {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				c := b.restore(t, dir, "k"+strconv.Itoa(i))
				own := strconv.Itoa(i)
				if got := c.runScript("md5sum < /home/agent/big; ls /home/agent; ls /etc/passwd"); got != sum+"\nbig\n/etc/passwd" {
					t.Errorf("copy %d has %q, want the sum %q", i, got, sum)
				}
				c.runScript("dd if=/dev/zero bs=1M count=20 2>/dev/null | tr '\\0' " + own + " > /home/agent/own; echo " + own + " >> /home/agent/big")
				if got := c.runScript("tr -d " + own + " < /home/agent/own | wc -c; tail -n 1 /home/agent/big | tail -c 2"); got != "0\n"+own {
					t.Errorf("copy %d wrote its own and reads %q", i, got)
				}
				if r := c.execAs("", "/bin/sh", "-c", "dd if=/dev/zero of=/home/agent/more bs=1M count=300"); r.exit.Code == 0 || !strings.Contains(r.err, "No space left") {
					t.Errorf("copy %d has no disk cap: %+v", i, r)
				}
			})
		})
	}
	all.Wait()
	if got := b.runScript("md5sum < /home/agent/big; ls /home/agent"); got != sum+"\nbig" {
		t.Errorf("the source has %q", got)
	}
}

// testCopyOfACopy: its commands have come with it twice.
func testCopyOfACopy(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	count := b.startCommand("count", counting("count"))
	defer count.Close()
	b.typeLine(count, "a")
	b.readUntil(count, "a is 1\n")
	c := b.restore(t, b.snapshot(engine.ContentsMemory), "k")
	copied := c.adoptCommand("count")
	c.typeLine(copied, "b")
	c.readUntil(copied, "b is 2\n")
	c.runScript("echo c > /home/agent/c")
	d := c.restore(t, c.snapshot(engine.ContentsMemory), "d")
	again := d.adoptCommand("count")
	d.typeLine(again, "c")
	d.readUntil(again, "c is 3\n")
	if got := d.runScript("cat /home/agent/c"); got != "c" {
		t.Errorf("%q", got)
	}
}

// testFrozenCopy: a copy is as good as any instance for a freeze, and for a
// daemon that starts anew.
func testFrozenCopy(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	count := b.startCommand("count", counting("count"))
	defer count.Close()
	b.typeLine(count, "a")
	b.readUntil(count, "a is 1\n")
	for contents, name := range map[engine.Contents]string{engine.ContentsMemory: "m", engine.ContentsFiles: "f"} {
		dir := b.snapshot(contents)
		c := b.restore(t, dir, name)
		id := "count"
		conn := net.Conn(nil)
		if contents == engine.ContentsMemory {
			conn = c.adoptCommand(id)
		} else {
			conn = c.startCommand(id, counting(id))
			c.typeLine(conn, "a")
			c.readUntil(conn, "a is 1\n")
		}
		if err := os.RemoveAll(dir); err != nil { // it is not needed any more
			t.Fatal(err)
		}
		image := c.freeze()
		inst, err := s.Reopen().Open(t.Context(), c.inst.Handle())
		if err != nil {
			t.Fatal(err)
		}
		c.inst = inst
		c.thawFrom(image)
		c.typeLine(conn, "b")
		c.readUntil(conn, "b is 2\n")
	}
}

// testFilesOnly: what was written and deleted is in the copy; nothing runs in
// it.
func testFilesOnly(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	own := s.Own(b.id)
	b.runScript("cd " + own + " && mkdir -p d && echo one > d/f && ln -s f d/link && echo x > gone && rm gone && chmod 700 d/f && printf '%s' '#!/bin/sh' > d/run")
	sleeper := b.startCommand("sleeper", shellExec("sleeper", "sleep 1000"))
	defer sleeper.Close()
	b.runScript("rm -f " + own + "/lower")
	c := b.restore(t, b.snapshot(engine.ContentsFiles), "k")
	if got := c.runScript("cd " + s.Own(c.id) + " && ls && cat d/link && stat -c %a d/f"); got != "d\none\n700" {
		t.Errorf("the copy has %q", got)
	}
	if err := c.Keeper.Adopt(t.Context(), c.id, keeper.Command{ID: "sleeper"}, keeper.ExecOptions{}); err == nil {
		t.Error("a process came with the files")
	}
	c.runScript("cd " + s.Own(c.id) + " && echo two > d/f && rm d/link")
	if got := b.runScript("cd " + own + " && cat d/link"); got != "one" {
		t.Errorf("the source has %q", got)
	}
}
