package artifacts

import (
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
)

// Made gives bytes that no upstream has, by their sha256 (hex).
func (as *Artifacts) Made(sha256 string) (*Verified, error) {
	blob, err := as.cfg.Store.Get("sha256:" + sha256)
	if err != nil {
		return nil, err
	}
	return &Verified{blob, cache.Sums{SHA256: blob.Digest()}}, nil
}

// Make keeps bytes that no upstream has: size of them, which read gives from an offset on
// and which must have the sha256 (hex).
func (as *Artifacts) Make(sha256 string, size int64, read func(offset int64) ([]byte, error)) error {
	if size <= 0 {
		return fault.Invalid("what was built is empty")
	}
	out, err := as.cfg.Store.Create(size, size)
	if err != nil {
		return err
	}
	for err == nil && out.Size() < size {
		var piece []byte
		if piece, err = read(out.Size()); err == nil && len(piece) == 0 {
			err = fault.New(fault.ErrUnavailable, "what was built ends too early")
		}
		if err == nil {
			_, err = out.Write(piece)
		}
	}
	if err == nil && out.Sums().SHA256 != "sha256:"+sha256 {
		err = fault.Invalid("what was built has another digest than it should")
	}
	if err != nil {
		out.Abort()
		return err
	}
	return out.Commit()
}
