package keeper

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// memory is what a ring really takes, but for what its slices have spare.
func (r *ring) memory() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.buf)) + int64(len(r.segments))*segmentSize + int64(len(r.marks))*markCost
}

// TestOutputCountsAllThatItTakes: an output takes no more than is counted, also when it has ended with
// more changes of stream than its bytes are worth, and when it is brought down and all of these are among
// its newest bytes.
func TestOutputCountsAllThatItTakes(t *testing.T) {
	for _, ended := range []bool{false, true} {
		var memory outputMemory
		s := boxes(&memory, 1)[0]
		c := s.write(t, 1<<19, 1<<16)
		c.write(1<<16, 1)
		if ended {
			c.out.closeRing()
			close(c.done)
		}
		if takes := c.out.memory(); takes > s.output.total || takes < 1<<20 {
			t.Errorf("ended %t: an output takes %d bytes, and %d are counted", ended, takes, s.output.total)
		}
		for _, most := range []int64{1 << 20, 1 << 16} {
			s.relieveOutput(most)
			takes := c.out.memory()
			if takes > most || s.output.total > most || takes < most/8 || takes > s.output.total {
				t.Errorf("ended %t: brought down to %d it takes %d bytes, and %d are counted", ended, most, takes, s.output.total)
			}
		}
		if ended {
			continue
		}
		c.write(1<<16, 1)
		if takes := c.out.memory(); takes > s.output.total {
			t.Errorf("written on, an output takes %d bytes, and %d are counted", takes, s.output.total)
		}
	}
}

// TestEndedOutputInTinyPieces: what is kept of ended commands is bounded by what it takes, whatever its
// bytes are.
func TestEndedOutputInTinyPieces(t *testing.T) {
	var memory outputMemory
	s := boxes(&memory, 1)[0]
	for range 40 {
		c := newKeptCommand(&channel.Exec{ID: "c", Argv: []string{"x"}}, ExecOptions{RingBytes: 1 << 20}, s.output)
		c.write(1<<16, 1)
		c.out.closeRing()
		close(c.done)
		s.commands = append(s.commands, c)
		s.pruneCommands()
	}
	takes := int64(0)
	for _, c := range s.commands {
		takes += c.out.memory()
	}
	if takes > keptOutput+keptOutput/4 || takes < keptOutput/2 {
		t.Errorf("%d ended commands take %d bytes, and may take %d", len(s.commands), takes, keptOutput)
	}
}

// TestShortLinesOverHoursCount: a command that writes little has a mark for each of its passages, which
// take more than its bytes do; where there is no memory it has few.
func TestShortLinesOverHoursCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory outputMemory
		s := boxes(&memory, 1)[0]
		slowly := func() *keptCommand {
			c := s.write(t, 0, 1)
			for range 4000 {
				c.out.append(channel.FrameStdout, []byte("."))
				time.Sleep(2 * passageTime)
			}
			return c
		}
		c := slowly()
		if n := len(c.out.marks); n != 4000 || s.output.total < 4000*markCost {
			t.Errorf("%d marks take %d bytes", n, s.output.total)
		}
		c.out.closeRing()
		if takes := c.out.memory(); takes > s.output.total {
			t.Errorf("an output that has ended takes %d bytes, and %d are counted", takes, s.output.total)
		}
		if !s.output.takeBytes(sureOutput-s.output.total) || !memory.newOutputShare(func(int64) {}).takeBytes(sureOutput+allOutput) {
			t.Fatal("there is nothing to be had")
		}
		if n := len(slowly().out.marks); n != firstRing/passageCost {
			t.Errorf("%d marks where there is no memory for them", n)
		}
	})
}

// TestWhatSomebodyReadsIsBroughtDown: a reader that does not read on keeps the output of a command that
// is forgotten, and no more of it than its sandbox's part.
func TestWhatSomebodyReadsIsBroughtDown(t *testing.T) {
	var memory outputMemory
	s := boxes(&memory, 1)[0]
	var readers []*cursor
	for range 4 {
		c := s.write(t, 4<<20, 64<<10)
		reader, err := c.out.attach(0)
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, reader)
		c.out.closeRing()
		close(c.done)
	}
	s.pruneTo(0)
	if len(s.commands) != 1 || s.output.total < 16<<20 {
		t.Fatalf("the control: %d commands, and %d bytes that are read", len(s.commands), s.output.total)
	}
	s.relieveOutput(4 << 20)
	if s.output.total > 4<<20 {
		t.Errorf("%d bytes are kept for those who do not read on", s.output.total)
	}
	if got, err := readers[0].nextChunk(t.Context(), make([]byte, 1)); err != nil || got.gap < 3<<20 {
		t.Errorf("the first reader is told of a gap of %d bytes, %v", got.gap, err)
	}
	for _, r := range readers {
		r.detach()
	}
	if n := len(s.output.listRings()); n != 1 {
		t.Errorf("%d outputs are known when one command is", n)
	}
}

// TestAnHeirHasItsCommands: whoever still has hold of the sandbox before does not have the output of its
// heir's commands count no more.
func TestAnHeirHasItsCommands(t *testing.T) {
	var memory outputMemory
	both := boxes(&memory, 2)
	box, heir := both[0], both[1]
	for range 3 {
		c := box.write(t, 1<<20, 64<<10)
		c.out.closeRing()
		close(c.done)
	}
	heir.id = box.id
	s := &Server{sandboxes: map[string]*sandbox{box.id: box}}
	if err := s.succeed(box, heir); err != nil {
		t.Fatal(err)
	}
	has := heir.output.total
	box.forgetCommands()
	if heir.output.total != has || has < 3<<20 {
		t.Errorf("of %d bytes %d are counted", has, heir.output.total)
	}
	box.pruneTo(0)
	if len(heir.commands) != 1 || heir.output.total != ringCost(1<<20, false) {
		t.Errorf("%d commands are left, of which %d bytes are counted", len(heir.commands), heir.output.total)
	}
}
