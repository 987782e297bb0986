package layer

import (
	"errors"
	"os"
)

// Pack writes the layer in a directory, which must not change meanwhile, to a new file.
func Pack(dir, file string, owners Owners) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(Write(f, root, owners), f.Close())
}

// Unpack puts what Pack wrote into an empty directory.
func Unpack(file, dir string, owners Owners) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return Read(f, root, owners)
}
