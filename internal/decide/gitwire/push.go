package gitwire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a push that a person is asked about: all of it is shown.
const (
	MaxCommands = 50
	maxOptions  = 10
	maxRef      = 180 // bytes
	maxOption   = 200
	maxHead     = 64 << 10 // bytes of commands and options
)

// Command moves a ref.
type Command struct {
	Old string `json:"old"` // the object's name in hex; all zeros: there is no such ref yet
	New string `json:"new"` // all zeros: the ref is deleted
	Ref string `json:"ref"`
}

// Creates tells whether the ref is new.
func (c Command) Creates() bool { return strings.Trim(c.Old, "0") == "" }

// Deletes tells whether the ref is to go.
func (c Command) Deletes() bool { return strings.Trim(c.New, "0") == "" }

// Change is what a push is about to change. Objects are told by the pack's head; that it
// keeps to it is for the host to see.
type Change struct {
	Commands []Command `json:"commands"` // none: nothing is changed
	Options  []string  `json:"options,omitempty"`
	Objects  uint32    `json:"objects"`
}

// Digest is of what is to be changed, "sha256:...". The names of the objects that refs are
// moved to are digests themselves, so it is of their contents, too.
func (c Change) Digest() string {
	h := sha256.New()
	for _, command := range c.Commands {
		_, _ = h.Write([]byte(command.Old + " " + command.New + " " + command.Ref + "\n")) // it never fails
	}
	for _, option := range c.Options {
		_, _ = h.Write([]byte("option " + option + "\n"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Pushed is the body of a push, of which the beginning is read.
type Pushed struct {
	Change
	// Said is all that was read of the body.
	Said         []byte
	capabilities []string
}

// ReadPush reads the body of a push up to where its objects begin. An error is a Malformed
// or the reader's; Pushed has what was read until then.
func ReadPush(from io.Reader) (*Pushed, error) {
	l := &pktLines{from: from, most: maxHead}
	p := &Pushed{}
	err := p.read(l)
	p.Said = l.said
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = malformed("the push ends before its refs do")
	}
	return p, err
}

func (p *Pushed) read(l *pktLines) error {
	if err := p.readCommands(l); err != nil {
		return err
	}
	if slices.Contains(p.capabilities, "push-options") {
		if err := p.readOptions(l); err != nil {
			return err
		}
	}
	return p.readPack(l)
}

func (p *Pushed) readCommands(l *pktLines) error {
	for {
		line, end, err := l.nextLine()
		if err != nil || end {
			return err
		}
		text, capabilities, first := strings.Cut(string(line), "\x00")
		text = strings.TrimSuffix(text, "\n")
		switch {
		case first && (len(p.Commands) > 0 || p.capabilities != nil):
			return malformed("the push has capabilities in two places")
		case first:
			p.capabilities = append([]string{}, strings.Fields(capabilities)...)
		}
		switch name, rest, _ := strings.Cut(text, " "); name {
		case "shallow":
			if len(p.Commands) > 0 || first || !isObject(rest) {
				return malformed("the push has a shallow line where there is none")
			}
			continue
		case "push-cert":
			return malformed("the push is signed, and nobody can be shown what a signed push changes; push without --signed")
		}
		if err := p.addCommand(text); err != nil {
			return err
		}
	}
}

// addCommand takes a command in.
func (p *Pushed) addCommand(text string) error {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 || !isObject(parts[0]) || !isObject(parts[1]) || len(parts[0]) != len(parts[1]) {
		return malformed("the push has a command that is none")
	}
	c := Command{Old: parts[0], New: parts[1], Ref: parts[2]}
	switch {
	case !isRefName(c.Ref):
		return malformed("the push has a name of a ref that is too long or that no ref has")
	case slices.ContainsFunc(p.Commands, func(o Command) bool { return o.Ref == c.Ref }):
		return malformed("the push has a ref twice")
	case len(p.Commands) > 0 && len(p.Commands[0].Old) != len(c.Old):
		return malformed("the push has objects of two kinds")
	case len(p.Commands) == MaxCommands:
		return malformed("the push changes more refs than a person is asked about at once (%d)", MaxCommands)
	}
	p.Commands = append(p.Commands, c)
	return nil
}

func (p *Pushed) readOptions(l *pktLines) error {
	for {
		line, end, err := l.nextLine()
		if err != nil || end {
			return err
		}
		option := strings.TrimSuffix(string(line), "\n")
		if len(option) > maxOption || !isShown(option) || len(p.Options) == maxOptions {
			return malformed("the push has options that nobody can be shown: too many, too long, or with characters that do not show")
		}
		p.Options = append(p.Options, option)
	}
}

// readPack reads the head of the pack, if one has to follow.
func (p *Pushed) readPack(l *pktLines) error {
	brings := slices.ContainsFunc(p.Commands, func(c Command) bool { return !c.Deletes() })
	head, err := l.takeBytes(1)
	if errors.Is(err, io.EOF) && !brings {
		return nil
	}
	if err != nil {
		return err
	}
	if len(p.Commands) == 0 {
		return malformed("the push brings objects, and changes no ref")
	}
	start := len(l.said) - len(head)
	if _, err := l.takeBytes(11); err != nil {
		return err
	}
	head = l.said[start:]
	if version := binary.BigEndian.Uint32(head[4:]); !bytes.HasPrefix(head, []byte("PACK")) || version < 2 || version > 3 {
		return malformed("the push has something else where its objects are")
	}
	p.Objects = binary.BigEndian.Uint32(head[8:])
	return nil
}

// isObject tells whether a text is the name of an object.
func isObject(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// isRefName tells whether a ref can have a name, as git itself has it.
func isRefName(s string) bool {
	if len(s) > maxRef || !strings.HasPrefix(s, "refs/") || !isShown(s) || strings.ContainsAny(s, " ~^:?*[\\") ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.HasSuffix(s, ".") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s, "/"), func(part string) bool {
		return part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	})
}

// isShown tells whether a person sees a text as it is.
func isShown(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' ' })
}
