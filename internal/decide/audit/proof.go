package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Proof shows that a record is in a log, to somebody who has nothing of the log
// but its public key. Text writes it as
//
//	cofferdam audit proof v1
//	index 12
//	record {"seq":12,...}
//	hash CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//	...
//
//	<the log checkpoint>
type Proof struct {
	Index  uint64   `json:"index"`  // the record's number
	Record string   `json:"record"` // its line, without the newline: the leaf
	Hashes []string `json:"hashes"` // base64, from the leaf up, as in RFC 6962
	// Checkpoint is the note whose tree has the record.
	Checkpoint string `json:"checkpoint"`
}

// MaxProof is the largest file that ParseProof takes, in bytes.
const MaxProof = 2*MaxRecord + 64<<10

const proofHeader = "cofferdam audit proof v1"

// LastCheckpoint is the newest checkpoint in a log's files, verified with the keys
// that lie with it; one of 0 records if there is none.
func LastCheckpoint(dir string) (checkpoint.Checkpoint, error) {
	c, _, err := lastCheckpoint(dir)
	if errors.Is(err, fault.ErrNotFound) {
		return checkpoint.Checkpoint{}, nil
	}
	return c, err
}

func lastCheckpoint(dir string) (checkpoint.Checkpoint, []byte, error) {
	tail, err := readTail(filepath.Join(dir, checkpointsName))
	if err != nil {
		return checkpoint.Checkpoint{}, nil, fault.Wrap(fault.ErrUnavailable, err, "the log's checkpoints can't be read")
	}
	if len(tail.notes) == 0 {
		return checkpoint.Checkpoint{}, nil, fault.New(fault.ErrNotFound, "there is no log checkpoint in %s, so nothing can be proved", dir)
	}
	ring, err := logKeys(dir)
	if err != nil {
		return checkpoint.Checkpoint{}, nil, err
	}
	n := tail.notes[len(tail.notes)-1]
	c, err := ring.Open(n)
	return c, n, err
}

// Prove makes the proof of a record from a log's files, under its last
// checkpoint. fault.ErrNotFound if there is no such record, ErrUnavailable if it
// is elsewhere or not covered yet, ErrInvalid if the log is damaged.
func Prove(dir string, record uint64) (Proof, error) {
	c, n, err := lastCheckpoint(dir)
	if err != nil {
		return Proof{}, err
	}
	text, err := findLine(dir, record)
	if err != nil {
		return Proof{}, err
	}
	if int64(record) >= c.Size {
		return Proof{}, fault.New(fault.ErrUnavailable, "record %d is not covered by a log checkpoint yet; the last covers %d records, the next comes within a second of a daemon's work", record, c.Size)
	}
	flat, _, err := openFlat(filepath.Join(dir, treeName))
	if err == nil && flat == nil {
		err = os.ErrNotExist
	}
	if err != nil {
		return Proof{}, fault.Wrap(fault.ErrUnavailable, err, "the log's tree can't be read; the daemon makes it again when it starts")
	}
	defer flat.Close()
	hashes, err := tlog.ProveRecord(c.Size, int64(record), treeReader(flat))
	if err != nil {
		return Proof{}, fault.Wrap(fault.ErrInvalid, err, "the log's tree is damaged; move the file %q away, and the daemon makes it again", treeName)
	}
	p := Proof{Index: record, Record: string(text), Checkpoint: string(n)}
	for _, h := range hashes {
		p.Hashes = append(p.Hashes, base64.StdEncoding.EncodeToString(h[:]))
	}
	ring, err := logKeys(dir)
	if err != nil {
		return Proof{}, err
	}
	if _, err := p.Check(ring); err != nil {
		return Proof{}, fault.Wrap(fault.ErrInvalid, err, "the log is damaged; `cofferdam audit verify` says where")
	}
	return p, nil
}

// logKeys are the public keys that lie with a log.
func logKeys(dir string) (checkpoint.Keyring, error) {
	keys, err := readPublicKeys(dir)
	if err != nil {
		return checkpoint.Keyring{}, err
	}
	return checkpoint.NewKeyring(strings.Join(keys, "\n"))
}

// findLine finds a record's line, without its newline.
func findLine(dir string, record uint64) ([]byte, error) {
	segments, err := listSegments(dir)
	if err != nil {
		return nil, err
	}
	i := len(segments) - 1
	for i > 0 && segments[i].first > record {
		i--
	}
	missing := fault.New(fault.ErrNotFound, "there is no record %d", record)
	if i < 0 {
		return nil, missing
	}
	if segments[i].form == elsewhere {
		return nil, fault.New(fault.ErrUnavailable, "record %d is in %s, which was sealed and moved away; put it back", record, sealedName(segments[i].first))
	}
	lines, err := openLines(dir, segments[i])
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
	}
	defer lines.close()
	for text, err := range eachLine(lines) {
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the audit log can't be read")
		}
		if seq, ok := seqOf(text); ok && seq == record {
			return bytes.Clone(bytes.TrimSuffix(text, []byte("\n"))), nil
		}
	}
	return nil, missing
}

// Check verifies a proof and returns the checkpoint that vouches for it.
func (p Proof) Check(keys checkpoint.Keyring) (checkpoint.Checkpoint, error) {
	c, err := keys.Open([]byte(p.Checkpoint))
	if err != nil {
		return c, err
	}
	if seq, ok := seqOf([]byte(p.Record)); !ok || seq != p.Index {
		return c, fault.New(fault.ErrForbidden, "the proof is for record %d, and the record in it is another", p.Index)
	}
	path := make(tlog.RecordProof, 0, len(p.Hashes))
	for _, text := range p.Hashes {
		h, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(h) != tlog.HashSize {
			return c, fault.Invalid("the proof has an invalid hash: %.60q", text)
		}
		path = append(path, tlog.Hash(h))
	}
	if p.Index >= uint64(c.Size) {
		return c, fault.New(fault.ErrForbidden, "the proof is for record %d, and its log checkpoint covers %d records", p.Index, c.Size)
	}
	if err := tlog.CheckRecord(path, c.Size, c.Root, int64(p.Index), leafOf([]byte(p.Record))); err != nil {
		return c, fault.New(fault.ErrForbidden, "the proof does not hold: this record is not number %d of the log that the checkpoint is of", p.Index)
	}
	return c, nil
}

// Text is the proof as text.
func (p Proof) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nindex %d\nrecord %s\n", proofHeader, p.Index, p.Record)
	for _, h := range p.Hashes {
		fmt.Fprintf(&b, "hash %s\n", h)
	}
	b.WriteString("\n" + p.Checkpoint)
	return b.String()
}

// ParseProof reads a proof, as text or JSON.
func ParseProof(data []byte) (Proof, error) {
	var p Proof
	if len(data) > MaxProof {
		return p, fault.Invalid("the proof is larger than %d bytes", MaxProof)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&p); err != nil {
			return p, fault.Wrap(fault.ErrInvalid, err, "the proof can't be read")
		}
		return p, nil
	}
	if err := p.parseText(string(data)); err != nil {
		return p, fault.Wrap(fault.ErrInvalid, err, "the proof can't be read")
	}
	return p, nil
}

func (p *Proof) parseText(text string) error {
	head, note, ok := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || lines[0] != proofHeader || len(lines) < 3 {
		return errors.New("it does not begin as a proof")
	}
	p.Checkpoint = note
	var err error
	if p.Index, err = strconv.ParseUint(strings.TrimPrefix(lines[1], "index "), 10, 64); err != nil {
		return errors.New("its second line is no index")
	}
	if p.Record, ok = strings.CutPrefix(lines[2], "record "); !ok {
		return errors.New("its third line is no record")
	}
	for _, l := range lines[3:] {
		h, ok := strings.CutPrefix(l, "hash ")
		if !ok {
			return fmt.Errorf("the line %.60q is no hash", l)
		}
		p.Hashes = append(p.Hashes, h)
	}
	return nil
}
