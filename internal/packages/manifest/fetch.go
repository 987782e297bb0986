package manifest

import (
	"errors"
	"fmt"
)

// BehindLinkError is the refusal to read what lies behind a link of the project: it leads out of the project, so that a stranger's
// project would choose which files of the host are read, or an agent could have put it there.
type BehindLinkError struct {
	Link string // its name in the project, with slashes
	Why  string // a sentence's part: "it leads out of the project"
}

func (e *BehindLinkError) Error() string {
	return "the link " + e.Link + " is not followed, since " + e.Why
}

// fetch reads a file of the project. All names are withheld for one that lies behind a link that is not followed: it may name a registry,
// or a package of the project's own.
func (w *Wants) fetch(file string) (data []byte, behind bool, err error) {
	data, err = w.files.Read(file)
	if w.noteBehind(err) {
		return nil, true, nil
	}
	return data, false, err
}

// noteBehind notes an error that is a link which is not followed, and tells whether it is one.
func (w *Wants) noteBehind(err error) bool {
	link, is := errors.AsType[*BehindLinkError](err)
	if is {
		w.Withhold(link.Link, 0, "", "this link is not followed, since "+link.Why+": so what lies behind it is not read, and may have any name")
	}
	return is
}

// Look gives a file's text without noting that it was read; nil where there is none, or it lies behind a link that is not followed.
func (w *Wants) Look(file string) ([]byte, error) {
	text, _, err := w.look(file)
	return text, err
}

func (w *Wants) look(file string) (text []byte, behind bool, err error) {
	if w.looks++; w.looks > maxLooks {
		return nil, false, fmt.Errorf("the project includes more than %d files", maxLooks)
	}
	data, behind, err := w.fetch(file)
	if err != nil || data == nil {
		return nil, behind, err
	}
	if text, err = Decode(data); err != nil {
		return nil, false, fmt.Errorf("%s can't be read: %w", file, err)
	}
	return text, false, nil
}
