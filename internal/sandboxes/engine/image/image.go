// Package image is the directory into which a sandbox is frozen, or a snapshot of
// it written, whatever engine writes it.
//
// Nobody but the daemon's user may enter an image's directory. Its seal is one more file, written
// last: the sandbox that the image is of, and the digest of each file. An image without a seal is
// not whole. The seal finds what was half written, mixed up or damaged on the disk; it is no
// signature, and who may write the directory may write a new seal.
package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// sealName is the seal's file in an image.
const sealName = "seal.json"

// maxSeal bounds what is read of a seal.
const maxSeal = 1 << 20

// seal is the content of the file.
type seal struct {
	Sandbox string          `json:"sandbox"`
	Files   map[string]file `json:"files"` // by name; an image has no directories
}

type file struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Make makes the directory of a new image, which only its owner may enter; its
// parents too. One that exists is a fault.ErrConflict: it may be an image that
// is still needed.
func Make(dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return fault.Invalid("the image directory %q must be a clean absolute path", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fmt.Errorf("make the directory of frozen images: %w", err)
	}
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(fault.ErrConflict, err, "there is an image at %s already", dir)
	}
	return err
}

// Seal writes the seal over all files of an image. Until it returns nil the
// image is not whole.
func Seal(dir, sandbox string) error {
	files, err := digests(dir)
	if err != nil {
		return fmt.Errorf("seal the image of sandbox %s: %w", sandbox, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("seal the image of sandbox %s: %s holds no files", sandbox, dir)
	}
	data, err := json.Marshal(seal{Sandbox: sandbox, Files: files})
	if err != nil {
		return err
	}
	// The keeper of the image brings its files to the disk, the seal with them.
	if err := atomicfile.ReplaceVolatile(filepath.Join(dir, sealName), data, 0o600); err != nil {
		return fmt.Errorf("seal the image of sandbox %s: %w", sandbox, err)
	}
	return nil
}

// Whole tells whether an image has its seal, without looking at its files.
func Whole(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, sealName))
	return err == nil
}

// Verify checks an image against its seal: it is of this sandbox, and no file
// is missing, added or changed. Anything else is a fault.ErrConflict that says
// what.
func Verify(dir, sandbox string) error {
	s, err := readSeal(dir)
	if err != nil {
		return fault.Wrap(fault.ErrConflict, err, "the image of sandbox %s at %s has no seal, so it was not written whole", sandbox, dir)
	}
	if s.Sandbox != sandbox {
		return fault.New(fault.ErrConflict, "the image at %s is of sandbox %.64q, not of %s", dir, s.Sandbox, sandbox)
	}
	found, err := digests(dir)
	if err != nil {
		return fault.Wrap(fault.ErrConflict, err, "the image of sandbox %s at %s can't be read", sandbox, dir)
	}
	if maps.Equal(found, s.Files) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		if found[name] != s.Files[name] {
			return fault.New(fault.ErrConflict, "the image of sandbox %s is damaged: %s is not what was written", sandbox, filepath.Join(dir, name))
		}
	}
	return fault.New(fault.ErrConflict, "the image of sandbox %s is damaged: something was added to %s", sandbox, dir)
}

// Size is the bytes that an image takes, the seal included.
func Size(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}

func readSeal(dir string) (seal, error) {
	var s seal
	f, err := os.Open(filepath.Join(dir, sealName))
	if err != nil {
		return s, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSeal))
	if err != nil {
		return s, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err = d.Decode(&s)
	return s, err
}

// digests reads every file of an image but the seal.
func digests(dir string) (map[string]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]file{}
	for _, entry := range entries {
		if entry.Name() == sealName {
			continue
		}
		if !entry.Type().IsRegular() {
			return nil, fmt.Errorf("%s is no regular file", filepath.Join(dir, entry.Name()))
		}
		if files[entry.Name()], err = digest(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func digest(path string) (file, error) {
	f, err := os.Open(path)
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 128<<10))
	return file{Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}
