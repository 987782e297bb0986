package advisory

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxUpload bounds what is imported from a client's bytes.
const maxUpload = 1 << 30

// errTooMuch: an upload is larger than any that is taken.
var errTooMuch = fault.New(fault.ErrInvalid, "what to import is larger than %d MiB; import it from the daemon's host, by its path", maxUpload>>20)

// Upload is Import of a client's bytes, which are kept on the disk, under no name,
// while they are read. job.Path is not used, and job.Label is needed. One at a time
// is taken.
func (db *DB) Upload(ctx context.Context, job Job, content io.Reader, progress func(Progress)) (api.AdvisoryImport, error) {
	if !db.receiving.TryLock() {
		return api.AdvisoryImport{}, errBusy()
	}
	defer db.receiving.Unlock()
	if job.Label == "" {
		return api.AdvisoryImport{}, fault.Invalid("an upload needs a label")
	}
	file, err := db.receiveContent(content)
	if err != nil {
		return api.AdvisoryImport{}, err
	}
	defer file.Close()
	job.Path, job.uploaded = "", file
	return db.Import(ctx, job, progress)
}

// receiveContent keeps content in a file without a name.
func (db *DB) receiveContent(content io.Reader) (*os.File, error) {
	if err := db.makeDirectory(); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(db.dir, ".upload-*")
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "an upload can't be kept")
	}
	_ = os.Remove(file.Name()) // it lives as long as it is open
	from := &upload{content: content, left: maxUpload}
	if _, err := io.Copy(file, from); err != nil {
		file.Close()
		switch {
		case errors.Is(err, errTooMuch):
			return nil, errTooMuch
		case from.err != nil:
			return nil, fault.Invalid("the upload did not come whole")
		}
		return nil, fault.Wrap(fault.ErrUnavailable, err, "an upload can't be kept")
	}
	return file, nil
}

// upload reads at most so many bytes, and remembers that the client's failed.
type upload struct {
	content io.Reader
	left    int64
	err     error
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.content.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, errTooMuch
	}
	if err != nil && !errors.Is(err, io.EOF) {
		u.err = err
	}
	return n, err
}
