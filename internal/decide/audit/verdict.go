package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Verdict is what Verify found. Its JSON is the output of `audit verify --json`.
type Verdict struct {
	Sound    bool      `json:"sound"` // nothing wrong was found
	Problems []Problem `json:"problems,omitempty"`
	Origin   string    `json:"origin,omitempty"`

	Records   uint64 `json:"records"`   // that were read and compared, or are elsewhere
	Covered   uint64 `json:"covered"`   // of them, the ones that the last checkpoint covers
	Sealed    uint64 `json:"sealed"`    // of them, the ones in sealed segments that are here
	Elsewhere uint64 `json:"elsewhere"` // of them, the ones of which only the hashes are here

	Checkpoints int       `json:"checkpoints"`
	Last        Milestone `json:"last_checkpoint"`
	// Kept are the auditor's own checkpoints, compared with the log.
	Kept []Milestone `json:"kept_checkpoints,omitempty"`
	// KeyFrom says where the key came from: "given", or "log" if it lay with the log.
	KeyFrom string   `json:"key_from"`
	Keys    []string `json:"keys"`

	Personal int `json:"personal"` // records with personal data that are as they were committed to
	Erased   int `json:"erased"`   // records whose personal data were erased, with a record of it

	// ErasedUnproved are records whose personal data were erased while the record of it,
	// if there is one, is elsewhere, behind a bad record, or has come since.
	ErasedUnproved int `json:"erased_unproved,omitempty"`

	Published *Published `json:"published,omitempty"`
	Notes     []string   `json:"notes,omitempty"`
	// CannotExclude are the limits of the proof, as sentences.
	CannotExclude []string `json:"cannot_exclude"`
}

// Milestone is a checkpoint that was verified.
type Milestone struct {
	Size uint64    `json:"size"`
	Root string    `json:"root,omitempty"` // base64
	Time time.Time `json:"time,omitzero"`
}

// Problem is something wrong. Record is the first bad record's number where one
// can be named; else it is nil, and What tells between which it lies.
type Problem struct {
	Record *uint64 `json:"record,omitempty"`
	File   string  `json:"file,omitempty"` // in the log's directory
	Offset int64   `json:"offset"`         // of the record in the file, uncompressed
	What   string  `json:"what"`
}

// Published says what was handed out last, to each place; package publish writes it.
type Published struct {
	Targets []PublishedTo `json:"targets"`
}

// PublishedTo is one place that checkpoints go to.
type PublishedTo struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`          // records that the last published checkpoint covers; 0: none was
	Time    time.Time `json:"time,omitzero"` // when it was handed out
	Failure string    `json:"failure,omitempty"`
	Since   time.Time `json:"failing_since,omitzero"`
}

// PublishedName is the file of the log's directory that has a Published.
const PublishedName = "published.json"

// ReadPublished reads what was handed out; os.ErrNotExist if nothing ever was.
func ReadPublished(dir string) (Published, error) {
	var p Published
	text, err := os.ReadFile(filepath.Join(dir, PublishedName))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// Text says it for a person, by the time of now; size is what the newest
// checkpoint covers.
func (t PublishedTo) Text(size uint64, now time.Time) string {
	text := t.Name + " has no checkpoint yet"
	if !t.Time.IsZero() {
		text = fmt.Sprintf("the last published checkpoint is %s old and covers %d of %d records (%s)", now.Sub(t.Time).Round(time.Second), t.Size, size, t.Name)
	}
	if t.Failure != "" {
		text += fmt.Sprintf("; failing since %s: %s", t.Since.Local().Format(time.DateTime), t.Failure)
	}
	return text
}
