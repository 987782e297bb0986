package engine

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Open opens what the mount shows of the host (it must have a Source): what was checked, or
// a fault.ErrConflict.
func (m Mount) Open() (*hostpath.Path, error) {
	var p *hostpath.Path
	var err error
	if m.Origin.IsZero() {
		p, err = hostpath.Follow(m.Source)
	} else {
		p, err = hostpath.Open(m.Source, m.Origin)
	}
	if err != nil {
		return nil, m.refusedError(err)
	}
	return p, nil
}

// refusedError says why the source is not shown.
func (m Mount) refusedError(err error) error {
	var link *hostpath.LinkError
	var changed *hostpath.ChangedError
	switch {
	case errors.As(err, &link):
		return fault.New(fault.ErrConflict, "%s, which is to be shown at %s, leads through %s, which is a link now and was none when it was checked; put back what was there, or make another sandbox", m.Source, m.Destination, link.Link)
	case errors.As(err, &changed):
		return fault.New(fault.ErrConflict, "%s, which is to be shown at %s, is another file or directory now than the one that was checked; put that back, or make another sandbox", m.Source, m.Destination)
	}
	return fault.Wrap(fault.ErrConflict, err, "%s, which is to be shown at %s, can't be opened any more", m.Source, m.Destination)
}

// CheckSources tells whether all that mounts show of the host, and the directories in which
// they hide something, are still what was checked; a fault.ErrConflict if not. It is for a
// sentence to whoever asks: what counts is what is opened when it is mounted.
func CheckSources(all []Mount) error {
	for _, m := range all {
		if m.Source != "" && !m.Origin.IsZero() {
			p, err := m.Open()
			if err != nil {
				return err
			}
			p.Close()
		}
		if !m.Around.IsZero() && !m.hiddenIn(all) {
			return m.Unhidden()
		}
	}
	return nil
}

// Unhidden is the refusal to hide something in another directory than the one in which it
// was.
func (m Mount) Unhidden() error {
	return fault.New(fault.ErrConflict, "%s is hidden, and the directory that it is in has been moved or replaced since that was looked at; put it back, or make another sandbox", m.Destination)
}

// hiddenIn tells whether the directory that something is hidden in is where it was.
func (m Mount) hiddenIn(all []Mount) bool {
	for _, outer := range all {
		rest, ok := strings.CutPrefix(m.Destination, outer.Destination+"/")
		if !ok || outer.Source == "" {
			continue
		}
		source, err := outer.Open()
		if err != nil {
			continue
		}
		dir, err := source.Below(filepath.Dir(rest), m.Around)
		source.Close()
		if err == nil {
			dir.Close()
			return true
		}
	}
	return false
}
