package unended

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// ReadEarlier finds the begins that the version before passed over, of sandboxes and of commands that go on
// in a copy, if that version wrote the file. It reads the whole log for that, which takes a while, and a
// damaged line ends it: no start waits for it, and none fails by it. Entries that the file did have are
// left as they are: where a segment is elsewhere, the file knows more than the log that is here.
func (g *Registry) ReadEarlier(ctx context.Context) error {
	g.mu.Lock()
	lacks := g.lacks
	g.mu.Unlock()
	if !lacks {
		return nil
	}
	earlier := &Registry{log: g.log, open: map[uint64]Begin{}}
	if err := earlier.readPassedOver(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.readFile(ctx); err != nil {
		return err
	}
	if err := earlier.readPassedOver(ctx); err != nil { // the ends that came meanwhile
		return err
	}
	for seq, b := range earlier.open {
		if seq < g.next {
			g.open[seq] = b
		}
	}
	g.lacks = false
	return g.saveFile()
}

// readPassedOver takes the records of the kinds that the version before passed over. Nobody else has g.
func (g *Registry) readPassedOver(ctx context.Context) error {
	for r, err := range g.log.Records(ctx, audit.Filter{FromSeq: g.next, Kinds: []audit.Kind{audit.KindSandbox, audit.KindCommand}}) {
		if err != nil {
			return err
		}
		if r.Kind != audit.KindCommand || r.Outcome != audit.Started { // which it knew
			g.takeRecord(r)
		}
		g.next = r.Seq + 1
	}
	return nil
}
