package golang

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/mod/sumdb"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// database is the log as sumdb.Client wants it, for one lookup.
type database struct {
	log    ecosystem.Log
	remote func(path string) ([]byte, error)
	lookup string // the path of the record, without a leading slash
	fresh  bool   // the cache is not read

	// Set by the client's calls. answer is what the record was read from; if it
	// is set before, the client gets it instead of the log's.
	answer []byte
	asked  bool // answer came from the log
	cached atomic.Bool

	mu     sync.Mutex // guards what follows
	failed error      // the first failure to ask or to keep
	lie    string     // what the client says of a log that forks
	missed bool       // failed is of the record itself
}

func newDatabase(ctx context.Context, log ecosystem.Log, lookup string) *database {
	return &database{log: log, lookup: lookup, remote: func(path string) ([]byte, error) { return log.Remote(ctx, path) }}
}

// again is the same lookup with an answer given.
func (d *database) again(answer []byte) *database {
	return &database{log: d.log, lookup: d.lookup, remote: d.remote, fresh: d.fresh, answer: answer}
}

// ReadRemote implements sumdb.ClientOps.
func (d *database) ReadRemote(path string) ([]byte, error) {
	path = strings.TrimPrefix(path, "/")
	data, err := d.remote(path)
	if path != d.lookup {
		return data, d.note(err, false)
	}
	if err == nil {
		err = checkPosition(data)
		d.answer, d.asked = data, true
	}
	return data, d.note(err, true)
}

// ReadConfig implements sumdb.ClientOps.
func (d *database) ReadConfig(file string) ([]byte, error) {
	if file == "key" {
		return []byte(d.log.Verifier()), nil
	}
	data, err := d.log.Config(file)
	return data, d.note(err, false)
}

// WriteConfig implements sumdb.ClientOps.
func (d *database) WriteConfig(file string, old, new []byte) error {
	err := d.log.Replace(file, old, new)
	if errors.Is(err, fault.ErrConflict) {
		return sumdb.ErrWriteConflict // compared with ==
	}
	return d.note(err, false)
}

// ReadCache implements sumdb.ClientOps.
func (d *database) ReadCache(file string) ([]byte, error) {
	record := strings.HasSuffix(file, "/"+d.lookup)
	if record && d.answer != nil {
		return d.answer, nil
	}
	if d.fresh {
		return nil, fault.New(fault.ErrNotFound, "the cache is not read")
	}
	data, err := d.log.Cached(file)
	if err == nil && record {
		err = checkPosition(data)
		d.answer = data
	}
	if err == nil {
		d.cached.Store(true)
	}
	return data, err
}

// WriteCache implements sumdb.ClientOps.
func (d *database) WriteCache(file string, data []byte) { d.log.Cache(file, data) }

// Log implements sumdb.ClientOps.
func (d *database) Log(string) {}

// SecurityError implements sumdb.ClientOps.
func (d *database) SecurityError(msg string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lie = msg
}

// note remembers the first failure, since the client drops its category.
func (d *database) note(err error, record bool) error {
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil || record {
		d.failed, d.missed = err, record
	}
	return err
}

// fault gives the client's error its category. What could not be asked for is
// not the log's lie; a log without one of its own tiles is.
func (d *database) fault(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.lie != "":
		return fault.Wrap(fault.ErrInvalid, errors.New(d.lie), "the checksum database shows two histories of itself")
	case d.missed:
		return d.failed
	case d.failed != nil && !errors.Is(d.failed, fault.ErrNotFound):
		return d.failed
	}
	return fault.Wrap(fault.ErrInvalid, err, "the checksum database's answer can't be verified")
}
