package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	cursorSpan   = 64 << 10 // bytes that are read in order rather than searched
	cursorBuffer = 16 << 10
	seqPrefix    = 32 // bytes of a line that tell its number
)

// personalCursor finds the personal data of a segment's records, which are asked
// for in ascending order, as the entries are. One record's are found without
// reading all: whoever looks up a record of a long log must not pay for its length.
// An entry that is not where it belongs is still found, at that price.
type personalCursor struct {
	path  string
	file  *os.File // nil until it is needed
	lines *bufio.Reader
	asked uint64
	whole personalReader // of entries that are shared; read when one is asked for
	era   int            // of shared, when whole was read
	// shared has those that other readers met, nil: none.
	shared *sharedEntries
	proof  *proof // nil: nothing was verified
}

func (p *personalCursor) close() error {
	file := p.file
	p.file, p.lines = nil, nil
	if file == nil {
		return nil
	}
	return file.Close()
}

// joinPersonal puts a record together again. Whether the data are the right ones is for
// Verify to say; readers take what proves itself and leave the rest.
func (p *personalCursor) joinPersonal(l encodedRecord) (Record, error) {
	r := l.Record
	if l.Owner != "" {
		err := p.joinOwner(&r, l.Owner)
		return r, err
	}
	if l.Personal == "" {
		return r, nil
	}
	e, err := p.findEntry(r.Seq, l.Personal)
	if err != nil {
		return r, err
	}
	if e.Seq != r.Seq || !e.proves() {
		r.Erased = true
		return r, p.proof.erasedAs(r.Seq)
	}
	r.User, r.Token, r.Task = e.Data.User, e.Data.Token, e.Data.Task
	if len(e.Data.Detail) > 0 && r.Detail == nil {
		r.Detail = map[string]string{}
	}
	maps.Copy(r.Detail, e.Data.Detail)
	return r, nil
}

// joinOwner puts in whose run it is, by the commitment to it.
func (p *personalCursor) joinOwner(r *Record, of string) error {
	e, known, era := p.shared.getEntry(of)
	if !known {
		if p.whole.path == "" || p.era != era { // else it has what was erased since
			p.whole, p.era = personalReader{path: p.path}, era
		}
		var err error
		if e, known, err = p.whole.findEntry(of); err != nil {
			return err
		}
		if known && e.proves() {
			p.shared.putEntry(e, era)
		}
	}
	if !known || !e.proves() {
		r.Erased = true
		erased := r.Seq
		if known {
			erased = e.Seq
		}
		return p.proof.erasedAs(erased)
	}
	r.User, r.Token = e.Data.User, e.Data.Token
	return nil
}

// findEntry returns the entry of a commitment; one without anything if there is none.
func (p *personalCursor) findEntry(seq uint64, of string) (personalEntry, error) {
	err := p.moveTo(seq)
	if errors.Is(err, os.ErrNotExist) {
		return personalEntry{}, nil
	}
	var e personalEntry
	found := false
	if err == nil {
		e, found, err = p.nextEntry(seq, of)
	}
	if err != nil {
		return personalEntry{}, fault.Wrap(fault.ErrUnavailable, err, "the personal data of the audit log can't be read")
	}
	if found {
		return e, nil
	}
	whole := personalReader{path: p.path}
	e, _, err = whole.findEntry(of)
	return e, err
}

// moveTo goes to an entry before that of seq, unless the cursor is there.
func (p *personalCursor) moveTo(seq uint64) error {
	if p.file == nil {
		file, err := os.Open(p.path)
		if err != nil {
			return err
		}
		p.file = file
	}
	if p.lines == nil || seq <= p.asked {
		from, err := searchPersonal(p.file, seq)
		if err != nil {
			return err
		}
		p.lines = bufio.NewReaderSize(io.NewSectionReader(p.file, from, 1<<62), cursorBuffer)
	}
	p.asked = seq
	return nil
}

// nextEntry reads on up to the entry of seq with this commitment. Of a crash there may
// be others of the same number.
func (p *personalCursor) nextEntry(seq uint64, of string) (personalEntry, bool, error) {
	for {
		head, err := p.lines.Peek(seqPrefix)
		if len(head) == 0 {
			return personalEntry{}, false, notEOF(err)
		}
		at, ok := seqOf(head)
		if ok && at > seq {
			return personalEntry{}, false, nil
		}
		if !ok || at < seq {
			if _, err := passLine(p.lines); err != nil {
				return personalEntry{}, false, notEOF(err)
			}
			continue
		}
		text, err := p.lines.ReadBytes('\n')
		var e personalEntry
		if err == nil && len(text) <= maxPersonalLine && json.Unmarshal(text, &e) == nil && e.Of == of {
			return e, true, nil
		}
		if err != nil {
			return personalEntry{}, false, notEOF(err)
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// passLine reads to the end of a line and returns how many bytes that were.
func passLine(lines *bufio.Reader) (int64, error) {
	passed := int64(0)
	for {
		text, err := lines.ReadSlice('\n')
		passed += int64(len(text))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return passed, err
		}
	}
}

// searchPersonal returns where a line begins that is before the entry of seq, and
// not far before it if the entries are in order.
func searchPersonal(file *os.File, seq uint64) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	low, high := int64(0), info.Size()
	for high-low > cursorSpan {
		middle := low + (high-low)/2
		lines := bufio.NewReaderSize(io.NewSectionReader(file, middle, high-middle), cursorBuffer/4)
		passed, err := passLine(lines)
		if notEOF(err) != nil {
			return 0, err
		}
		head, err := lines.Peek(seqPrefix)
		if notEOF(err) != nil {
			return 0, err
		}
		if at, ok := seqOf(head); ok && at < seq {
			low = middle + passed
		} else {
			high = middle
		}
	}
	return low, nil
}
