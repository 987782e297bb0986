package keeper

import (
	"maps"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The bounds of the output that the keeper keeps of all sandboxes, in bytes. Each has sureOutput, whatever the
// others have, and what some take beyond that comes out of allOutput, for each of them alike.
const (
	sureOutput = 2 << 20
	allOutput  = 256 << 20
)

// outputMemory counts the memory that the output of all sandboxes takes. The zero value is empty.
type outputMemory struct {
	mu     sync.Mutex // guards what follows, and all of every share; taken after a ring's, and nothing is called under it
	beyond int64      // what shares have beyond sureOutput, together
	heavy  map[*outputShare]struct{}
}

// outputShare is one sandbox's part. A nil one counts nothing.
type outputShare struct {
	memory    *outputMemory
	relieve   func(most int64)   // brings the sandbox's output down to so much memory
	rings     map[*ring]struct{} // that have taken some, those of forgotten commands that are still read too
	total     int64
	relieving bool
}

// newOutputShare makes a sandbox's part. relieve is called without a lock, when the sandbox has more than
// its part since others came.
func (m *outputMemory) newOutputShare(relieve func(most int64)) *outputShare {
	return &outputShare{memory: m, relieve: relieve, rings: map[*ring]struct{}{}}
}

// takeBytes takes n bytes; false: they are not to be had. Those who have more than their part are brought
// down then, so that asking again later may help.
func (s *outputShare) takeBytes(n int64) bool {
	if s == nil {
		return true
	}
	m := s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if after := s.total + n; after > sureOutput {
		most, more := m.partOf(s), after-max(s.total, sureOutput)
		if after > most {
			return false
		}
		if m.beyond+more > allOutput {
			m.relieveHeavy(most)
			return false
		}
	}
	m.addBytes(s, n)
	return true
}

// giveBytes gives n bytes back.
func (s *outputShare) giveBytes(n int64) {
	if s == nil || n == 0 {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.memory.addBytes(s, -n)
}

// addRing has relieveOutput find a ring that has taken memory; unknow ends that.
func (s *outputShare) addRing(r *ring) {
	if s == nil {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.rings[r] = struct{}{}
}

func (s *outputShare) unknow(r *ring) {
	if s == nil {
		return
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	delete(s.rings, r)
}

// listRings lists the rings that have taken memory.
func (s *outputShare) listRings() []*ring {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	return slices.Collect(maps.Keys(s.rings))
}

// partOf is how much a share may have while so many have more than is sure, itself among them. Needs mu.
func (m *outputMemory) partOf(s *outputShare) int64 {
	sharers := int64(len(m.heavy))
	if _, is := m.heavy[s]; !is {
		sharers++
	}
	return sureOutput + allOutput/sharers
}

// addBytes changes a share's total. Needs mu.
func (m *outputMemory) addBytes(s *outputShare, n int64) {
	m.beyond -= max(s.total-sureOutput, 0)
	s.total += n
	m.beyond += max(s.total-sureOutput, 0)
	if s.total <= sureOutput {
		delete(m.heavy, s)
		return
	}
	if m.heavy == nil {
		m.heavy = map[*outputShare]struct{}{}
	}
	m.heavy[s] = struct{}{}
}

// relieveHeavy brings down those who have more than most. Needs mu.
func (m *outputMemory) relieveHeavy(most int64) {
	for s := range m.heavy {
		if s.total <= most || s.relieving {
			continue
		}
		s.relieving = true
		relieve := s.relieve
		safego.Go(func() {
			defer func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				s.relieving = false
			}()
			relieve(most)
		})
	}
}

// passTo passes the share to another sandbox.
func (s *outputShare) passTo(heir *sandbox) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.relieve, heir.output = heir.relieveOutput, s
}

// relieveOutput brings what is kept of the sandbox's output down to so much memory: ended commands are
// forgotten first, the oldest first and the last one never; then what those that are left, or that
// somebody still reads, have more than all alike is dropped. A reader that has not read it misses it, and
// is told of the gap.
func (s *sandbox) relieveOutput(most int64) {
	s.pruneTo(most / 2) // which is of bytes, and these take some more
	rings := s.output.listRings()
	for _, r := range rings {
		r.shrink(most / int64(len(rings)))
	}
}

// The bound of the output that the keeper keeps of one sandbox, whoever asks for how much: it is
// memory that no limit of the sandbox counts.
const (
	keptOutput  = 16 << 20 // of all ended commands, and of the first running ones
	leastOutput = 64 << 10 // of a running one
)

// pruneCommands drops the oldest ended commands past the number and the output to keep;
// the last one stays.
func (s *sandbox) pruneCommands() { s.pruneTo(keptOutput) }

// pruneTo prunes to another bound of the output to keep. The commands of a sandbox whose place
// another has taken are that one's.
func (s *sandbox) pruneTo(most int64) {
	if heir := s.pruneOwn(most); heir != nil {
		heir.pruneTo(most)
	}
}

// pruneOwn prunes, as pruneTo does, unless there is an heir.
func (s *sandbox) pruneOwn(most int64) (heir *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heir != nil {
		return s.heir
	}
	ended, kept := 0, int64(0)
	for _, c := range s.commands {
		if !c.running() {
			ended++
			kept += c.out.weight()
		}
	}
	s.commands = slices.DeleteFunc(s.commands, func(c *keptCommand) bool {
		if c.running() || ended <= 1 || ended <= s.keepEnded && kept <= most {
			return false
		}
		ended--
		kept -= c.out.weight()
		c.out.retire()
		return true
	})
	return nil
}

// shareOfOutput is how much of its output is kept of one more command: at most half of what
// those that run leave of keptOutput, so that all of them together never have more
// than keptOutput and leastOutput for each.
func (s *sandbox) shareOfOutput(asked int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := int64(keptOutput)
	for _, c := range s.commands {
		if c.running() {
			left -= c.out.max
		}
	}
	if asked <= 0 {
		asked = defaultRing
	}
	return min(asked, max(leastOutput, left/2))
}

// forgetCommands gives back what the output of a sandbox takes that is forgotten, and lets no command
// begin any more. Those of a sandbox whose place another has taken are that one's.
func (s *sandbox) forgetCommands() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heir != nil {
		return
	}
	s.forgotten = true
	for _, c := range s.commands {
		c.out.retire()
	}
}
