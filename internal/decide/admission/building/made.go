package building

import (
	"hash"
	"io"
	"os"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// made is what came out of a build, kept for some minutes, until the gateway has read it. Its last
// three fields are the desk's.
type made struct {
	file  *os.File
	sum   hash.Hash
	size  int64
	built door.Built

	readers int
	ends    *time.Timer
	gone    bool
}

// Write implements io.Writer. More than door.MaxBuilt bytes are refused.
func (m *made) Write(p []byte) (int, error) {
	if m.size+int64(len(p)) > door.MaxBuilt {
		return 0, &Failure{Sentence: "what was built is larger than 64 MiB"}
	}
	n, err := m.file.Write(p)
	m.size += int64(n)
	m.sum.Write(p[:n])
	if err != nil {
		return n, fault.Wrap(fault.ErrUnavailable, err, "what was built can't be kept")
	}
	return n, nil
}

// keepMade has what was made read for a while. The oldest goes first.
func (d *Desk) keepMade(m *made) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m.ends = safego.After(keptFor, func() { d.dropMade(m) })
	d.kept = append(d.kept, m)
	for len(d.kept) > maxKept {
		d.removeMade(d.kept[0])
	}
}

func (d *Desk) dropMade(m *made) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeMade(m)
}

// removeMade needs mu. A reader closes the file when it is done.
func (d *Desk) removeMade(m *made) {
	m.ends.Stop()
	d.kept = slices.DeleteFunc(d.kept, func(k *made) bool { return k == m })
	if m.gone = true; m.readers == 0 {
		_ = m.file.Close() // it has no name, and goes with that
	}
}

// Close forgets what was made.
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.kept) > 0 {
		d.removeMade(d.kept[0])
	}
}

// Read gives a piece of what was made with this sha256 (hex), from an offset on; empty at
// its end. fault.ErrNotFound: it is kept no more.
func (d *Desk) Read(sha256 string, offset int64) ([]byte, error) {
	d.mu.Lock()
	at := slices.IndexFunc(d.kept, func(m *made) bool { return m.built.SHA256 == sha256 })
	if at < 0 {
		d.mu.Unlock()
		return nil, fault.New(fault.ErrNotFound, "what was built is not kept any more; ask again")
	}
	m := d.kept[at]
	m.readers++
	m.ends.Reset(keptFor)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if m.readers--; m.readers == 0 && m.gone {
			_ = m.file.Close() // as in removeMade
		}
	}()
	if offset < 0 || offset > m.size {
		return nil, fault.Invalid("what was built has %d bytes, and is asked for from %d on", m.size, offset)
	}
	piece := make([]byte, min(mostRead, m.size-offset))
	if _, err := m.file.ReadAt(piece, offset); err != nil && err != io.EOF {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "what was built can't be read")
	}
	return piece, nil
}

// mostRead is the most that Read gives, in bytes.
const mostRead = 1 << 20
