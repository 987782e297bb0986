// Package checkpoint is the signed head of the audit log: what a log checkpoint
// says, how it is signed, which keys are trusted, and how the private key is kept.
//
// A log checkpoint states how many records a log has and the root hash of the Merkle tree over
// them. Its origin names the log, and its note is the signed text. Each public key has a line
// "name+hash+base64" (the verifier key of golang.org/x/mod/sumdb/note). When the key changes, both
// the old and the new one sign a checkpoint that names both.
//
// The text is the C2SP tlog-checkpoint form with extension lines:
//
//	cofferdam-audit/9f1c2ab3d4e5f607
//	1204
//	CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//	time 2026-11-21T22:10:00Z
//
//	— cofferdam-audit/9f1c2ab3d4e5f607 Az3grl...
//
// so tools for such logs read it.
package checkpoint

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxNote is the longest note, in bytes.
const MaxNote = 8 << 10

// Checkpoint is what a note says.
type Checkpoint struct {
	Origin string
	Size   int64 // records
	Root   tlog.Hash
	Time   time.Time // when it was made, by the log's clock; zero if it does not say
	// OldKey and NewKey are public keys, set only in a rotation.
	OldKey, NewKey string
}

const (
	timeLine     = "time "
	rotationLine = "key-rotation "
)

// signedText is what is signed.
func (c Checkpoint) signedText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
	if !c.Time.IsZero() {
		fmt.Fprintf(&b, "%s%s\n", timeLine, c.Time.UTC().Format(time.RFC3339Nano))
	}
	if c.NewKey != "" {
		fmt.Fprintf(&b, "%s%s %s\n", rotationLine, c.OldKey, c.NewKey)
	}
	return b.String()
}

// Sign makes the note.
func (c Checkpoint) Sign(keys ...Key) ([]byte, error) {
	signers := make([]note.Signer, 0, len(keys))
	for _, k := range keys {
		signers = append(signers, k.signer)
	}
	return note.Sign(&note.Note{Text: c.signedText()}, signers...)
}

// parseText reads the text of a note. Extension lines of others are passed over.
func parseText(text string) (Checkpoint, error) {
	var c Checkpoint
	wrong := func(what string) (Checkpoint, error) {
		return c, fault.Invalid("the log checkpoint is not one: %s", what)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 3 || lines[0] == "" {
		return wrong("it needs an origin, a size and a root hash, each on its line")
	}
	c.Origin = lines[0]
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return wrong(fmt.Sprintf("%.40q is no size", lines[1]))
	}
	c.Size = size
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return wrong(fmt.Sprintf("%.60q is no root hash", lines[2]))
	}
	c.Root = tlog.Hash(root)
	for _, l := range lines[3:] {
		if at, ok := strings.CutPrefix(l, timeLine); ok {
			if c.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
				return wrong(fmt.Sprintf("%.40q is no time", at))
			}
		}
		if keys, ok := strings.CutPrefix(l, rotationLine); ok {
			if c.OldKey, c.NewKey, ok = strings.Cut(keys, " "); !ok {
				return wrong("its rotation does not name two keys")
			}
		}
	}
	return c, nil
}

// Split cuts a file of notes, each followed by an empty line, into the notes.
// Rest is what follows the last whole one: nothing, or what a crash tore.
func Split(file []byte) (notes [][]byte, rest []byte) {
	for {
		body := bytes.Index(file, []byte("\n\n"))
		if body < 0 {
			break
		}
		signatures := bytes.Index(file[body+2:], []byte("\n\n"))
		if signatures < 0 {
			break
		}
		end := body + 2 + signatures + 1
		notes = append(notes, file[:end])
		file = file[end+1:]
	}
	return notes, file
}
