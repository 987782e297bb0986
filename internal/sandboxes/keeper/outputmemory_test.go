package keeper

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// boxes are sandboxes that share a memory for output.
func boxes(memory *outputMemory, n int) []*sandbox {
	all := make([]*sandbox, n)
	for i := range all {
		s := &sandbox{id: fmt.Sprint(i), keepEnded: 64}
		s.output = memory.newOutputShare(s.relieveOutput)
		all[i] = s
	}
	return all
}

// write has another command of a sandbox write on both outputs in turn, in pieces of so many bytes.
func (s *sandbox) write(t *testing.T, bytes, piece int) *keptCommand {
	t.Helper()
	c := newKeptCommand(&channel.Exec{ID: fmt.Sprint(len(s.commands)), Argv: []string{"x"}}, ExecOptions{RingBytes: s.shareOfOutput(8 << 20)}, s.output)
	if err := s.reserve(c); err != nil {
		t.Fatal(err)
	}
	c.write(bytes, piece)
	return c
}

func (c *keptCommand) write(bytes, piece int) {
	for i := range bytes / piece {
		c.out.append([]channel.FrameType{channel.FrameStdout, channel.FrameStderr}[i%2], make([]byte, piece))
	}
}

// settle waits until nobody is being brought down.
func (m *outputMemory) settle() {
	for {
		m.mu.Lock()
		busy := false
		for s := range m.heavy {
			busy = busy || s.relieving
		}
		m.mu.Unlock()
		if !busy {
			return
		}
		runtime.Gosched()
	}
}

// TestOutputOfAllSandboxes: however many sandboxes write as much as they can, their output takes no more
// than all may have together; one that comes later gets its part as soon as it writes, and what it has
// written is there.
func TestOutputOfAllSandboxes(t *testing.T) {
	var memory outputMemory
	all := boxes(&memory, 60)
	for _, s := range all {
		for range 3 {
			s.write(t, 8<<20, 64<<10)
		}
	}
	memory.settle()
	if control := all[0].commands[0].out.memoryHeld(); control == 0 || memory.beyond < allOutput/2 {
		t.Fatalf("the first keeps %d bytes, and all have %d beyond what is sure", control, memory.beyond)
	}
	late := boxes(&memory, 1)[0]
	c := late.write(t, 64<<10, 64<<10)
	part := int64(sureOutput + allOutput/61)
	for c.out.memoryHeld() < part/4 { // a buffer doubles
		c.write(64<<10, 64<<10)
		memory.settle()
	}
	memory.settle()
	total := int64(0)
	for _, s := range append(all, late) {
		for _, c := range s.commands {
			total += ringCost(c.out.memoryHeld(), c.out.choppy)
		}
	}
	if most := int64(allOutput + 61*(sureOutput+64*3*firstRing)); total > most || memory.beyond > allOutput {
		t.Errorf("%d bytes are kept, which may be %d; %d beyond what is sure", total, most, memory.beyond)
	}
}

// TestChangesOfStreamCount: a command that writes a byte on each output in turn takes more memory than
// its bytes do, and has it of its sandbox's part; where there is none, fewer bytes are kept.
func TestChangesOfStreamCount(t *testing.T) {
	var memory outputMemory
	s := boxes(&memory, 1)[0]
	c := s.write(t, 1<<15, 1)
	if has := s.output.total; has != ringCost(1<<15*segmentCost, true) || len(c.out.segments) != 1<<15 {
		t.Errorf("%d changes take %d bytes", len(c.out.segments), has)
	}
	crowded := boxes(&memory, 1)[0]
	if !crowded.output.takeBytes(sureOutput) {
		t.Fatal("there is nothing to be had")
	}
	if rest := memory.newOutputShare(func(int64) {}); !rest.takeBytes(sureOutput + allOutput - memory.beyond) {
		t.Fatal("nobody else can have the rest")
	}
	c = crowded.write(t, 1<<15, 1)
	if has := crowded.output.total; has > sureOutput || len(c.out.segments) > firstRing/plainCost || c.out.endOffset() != 1<<15 {
		t.Errorf("of %d bytes, %d changes take %d", c.out.endOffset(), len(c.out.segments), has-sureOutput)
	}
}

// TestAnOutputIsGivenBack: when its command has ended, when that is forgotten and when its sandbox is,
// though not before its last reader has gone.
func TestAnOutputIsGivenBack(t *testing.T) {
	var memory outputMemory
	s := boxes(&memory, 1)[0]
	c := s.write(t, 3<<20, 64<<10)
	if has := s.output.total; has != ringCost(4<<20, false) {
		t.Fatalf("a command that runs takes %d bytes", has)
	}
	c.out.closeRing()
	close(c.done)
	if has := s.output.total; has != ringCost(3<<20, false) {
		t.Errorf("one that has ended takes %d bytes", has)
	}
	reader, err := c.out.attach(0)
	if err != nil {
		t.Fatal(err)
	}
	running := s.write(t, 64<<10, 64<<10)
	s.forgetCommands()
	if has := s.output.total; has != ringCost(3<<20, false) {
		t.Errorf("a forgotten sandbox with a reader of one command takes %d bytes", has)
	}
	reader.detach()
	running.write(1<<20, 64<<10)
	running.out.closeRing()
	if has := s.output.total; has != 0 || len(memory.heavy) > 0 || memory.beyond != 0 {
		t.Errorf("a forgotten sandbox takes %d bytes, %d beyond", has, memory.beyond)
	}
	if err := s.reserve(running); err == nil {
		t.Error("a forgotten sandbox begins a command")
	}
}

// TestAReaderIsToldWhatItMisses when its sandbox is brought down to its part: what it reads after the
// gap is what was written.
func TestAReaderIsToldWhatItMisses(t *testing.T) {
	var memory outputMemory
	s := boxes(&memory, 1)[0]
	c := newKeptCommand(&channel.Exec{ID: "c", Argv: []string{"x"}}, ExecOptions{RingBytes: 1 << 20}, s.output)
	if err := s.reserve(c); err != nil {
		t.Fatal(err)
	}
	reader, err := c.out.attach(0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1 << 10 {
		c.out.append(channel.FrameStdout, fmt.Appendf(nil, "%9d\n", i))
	}
	s.relieveOutput(5 << 10) // of which 4 KiB are the buffer's
	got, err := reader.nextChunk(context.Background(), make([]byte, 1<<20))
	if err != nil || got.gap != 10<<10-4<<10 {
		t.Fatalf("the gap is of %d bytes, %v", got.gap, err)
	}
	text := make([]byte, 1<<20)
	got, err = reader.nextChunk(context.Background(), text)
	if want := fmt.Sprintf("%9d\n", 1<<10-1); err != nil || got.n < 10 || string(text[got.n-10:got.n]) != want {
		t.Errorf("the end of %d bytes is not %q, %v", got.n, want, err)
	}
}

// BenchmarkTinyPieces has a ring that is full take a byte for each output in turn: it takes as long for
// a large ring as for a small one.
func BenchmarkTinyPieces(b *testing.B) {
	for _, size := range []int64{minRing, 8 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := newRing(size, nil)
			for i := range int(size) {
				r.append([]channel.FrameType{channel.FrameStdout, channel.FrameStderr}[i%2], []byte{1})
			}
			for i := 0; b.Loop(); i++ {
				r.append([]channel.FrameType{channel.FrameStdout, channel.FrameStderr}[i%2], []byte{1})
			}
		})
	}
}
