package guest

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// generationFile tells programs that they are in a copy: it has another id in each, and
// is written in place when a copy begins, so that those see it who watch it.
const generationFile = "/run/cofferdam/generation"

// hooksDir has what programs load to be told.
const hooksDir = "/run/cofferdam/hooks"

//go:embed hooks
var hooks embed.FS

// writeHooks writes what programs load.
func (a *Agent) writeHooks() error {
	entries, err := hooks.ReadDir("hooks")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := hooks.ReadFile("hooks/" + e.Name())
		if err == nil {
			err = replaceFile(a.config.Root+hooksDir+"/"+e.Name(), text)
		}
		if err != nil {
			return fmt.Errorf("write the hooks of copies: %w", err)
		}
	}
	if library := reseeder(); library != nil {
		return replaceFile(a.config.Root+hooksDir+"/reseed.node", library)
	}
	return nil
}

// begetGeneration gives this copy its id, of the seed that the host made for it.
func (a *Agent) begetGeneration(seed []byte) error {
	if len(seed) == 0 {
		return nil
	}
	path := filepath.Clean(a.config.Root + generationFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a system directory is readable
		return err
	}
	sum := sha256.Sum256(append([]byte("generation\x00"), seed...))
	// Written over, not cut off before: a reader finds the former or this one.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // everybody reads this
	if err != nil {
		return fmt.Errorf("write the generation: %w", err)
	}
	_, err = fmt.Fprintf(f, "%x\n", sum[:16])
	return errors.Join(err, f.Close())
}
