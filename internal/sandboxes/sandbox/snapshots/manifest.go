package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

const (
	manifestName = "manifest.json"
	stateName    = "state.json"
	imageName    = "image"
	coldName     = "cold"

	maxManifest   = 8 << 20
	maxAttachment = 64 << 20
)

// Manifest says what a snapshot is. All of it is in the digest.
type Manifest struct {
	ID       string          `json:"id"`
	Name     string          `json:"name,omitempty"`
	Owner    string          `json:"owner,omitempty"` // a token's id; "": the host's
	Created  time.Time       `json:"created"`
	Contents engine.Contents `json:"contents"`
	Bytes    int64           `json:"bytes"`    // of the image, uncompressed; holes are none
	Template string          `json:"template"` // the digest of the template under it
	// Seal is the sha256 of the image's seal, in hexadecimal; Attached those of
	// the attachments, by name.
	Seal     string            `json:"seal"`
	Attached map[string]string `json:"attached,omitempty"`
	// Body is whatever the maker keeps.
	Body json.RawMessage `json:"body"`
}

// envelope is the manifest's file. Digest is of the bytes of Manifest as they
// stand there.
type envelope struct {
	Digest   string          `json:"digest"`
	Manifest json.RawMessage `json:"manifest"`
}

// mutable is the content of state.json.
type mutable struct {
	// Record is the number of the snapshot's record in the log.
	Record uint64 `json:"record"`
	// Overtaken: the manifest's name is another snapshot's now, or nobody's.
	Overtaken bool `json:"overtaken,omitempty"`
	// Also are its other names.
	Also []string `json:"also,omitempty"`
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sealManifest encodes a manifest, and returns its digest.
func (m Manifest) sealManifest() (file []byte, digest string, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, "", err
	}
	digest = "sha256:" + digestOf(body)
	file, err = json.Marshal(envelope{Digest: digest, Manifest: body})
	return file, digest, err
}

// readManifest reads the manifest of a snapshot's directory and checks it
// against its digest and against the name of the directory.
func readManifest(dir string) (Manifest, string, error) {
	var m Manifest
	data, err := readBounded(filepath.Join(dir, manifestName), maxManifest)
	if err != nil {
		return m, "", err
	}
	damaged := func(why string) (Manifest, string, error) {
		return m, "", fault.New(fault.ErrConflict, "the snapshot %s is damaged: %s", filepath.Base(dir), why)
	}
	var file envelope
	if err := json.Unmarshal(data, &file); err != nil {
		return damaged("its manifest can't be read")
	}
	if file.Digest != "sha256:"+digestOf(file.Manifest) {
		return damaged("its manifest is not what was written")
	}
	if again, err := json.Marshal(file); err != nil || string(again) != string(data) {
		return damaged("its manifest is not what was written") // a byte between the values
	}
	if err := json.Unmarshal(file.Manifest, &m); err != nil {
		return damaged("its manifest can't be read")
	}
	if m.ID != filepath.Base(dir) {
		return damaged(fmt.Sprintf("it lies where another belongs, and is %.64q", m.ID))
	}
	return m, file.Digest, nil
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = errors.New(path + " is too long")
	}
	return data, err
}

// readState reads what may change of a snapshot.
func readState(dir string) (mutable, error) {
	var s mutable
	data, err := readBounded(filepath.Join(dir, stateName), 1<<16)
	if err != nil {
		return s, err
	}
	err = json.Unmarshal(data, &s)
	return s, err
}

// writeState replaces it in one step.
func writeState(dir string, s mutable) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, stateName), data, 0o600)
}

// writeSynced writes a file that has survived a loss of power when it returns.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	return errors.Join(werr, f.Sync(), f.Close())
}

// syncFiles does the same for all files of a flat directory.
func syncFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(dir)
}
