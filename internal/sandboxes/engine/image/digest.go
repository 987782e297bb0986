package image

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Digest is the sha256, in hexadecimal, of an image's seal: it names all bytes of
// the image, without reading more than the seal. Whether the image has these
// bytes Verify tells.
func Digest(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, sealName))
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, maxSeal+1)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Intact checks an image against its own seal, whatever sandbox it is of; see
// Verify.
func Intact(dir string) error {
	s, err := readSeal(dir)
	if err != nil {
		return fault.Wrap(fault.ErrConflict, err, "the image at %s has no seal, so it was not written whole", dir)
	}
	return Verify(dir, s.Sandbox)
}
