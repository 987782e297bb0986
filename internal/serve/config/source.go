package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// mostConfig bounds the file, in bytes.
const mostConfig = 16 << 20

// Source is the file that a configuration was read from.
type Source struct {
	Path   string
	SHA256 string // in hexadecimal; "": there is no file

	places places
}

// Place says of an error about a setting that was found later than by Load where that is in the file. Any other
// error stays as it is.
func (s Source) Place(err error) error {
	const begin = "the configuration is wrong: "
	told, wrong := strings.CutPrefix(err.Error(), begin)
	text := s.places.place(told)
	switch {
	case text == told:
		return err
	case wrong:
		text = fmt.Sprintf("the configuration file %s is wrong: %s", s.Path, text)
	default:
		text = fmt.Sprintf("the configuration file %s, %s", s.Path, text)
	}
	return placed{error: err, text: text}
}

// File is the configuration file: the one that somebody has named, else config.yaml in the state
// directory; of the machine's own installation that in /etc, if there is none in the state directory.
func (p Paths) File() string {
	own := filepath.Join(p.State, "config.yaml")
	switch {
	case p.Config != "":
		return p.Config
	case p.Machine != "" && !isThere(own) && isThere(p.Machine):
		return p.Machine
	}
	return own
}

// isThere tells whether something has a name, and also where that can't be told.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Load reads the configuration file; if there is none, and none was named, it gives the defaults. A
// wrong one is fault.ErrInvalid with file and line; one that another user or a sandbox could have written is
// fault.ErrForbidden: it names programs that are run with the daemon's rights. Two of them are
// fault.ErrConflict: nobody could tell which one counts.
func (p Paths) Load() (Config, Source, error) {
	path := p.File()
	if own := filepath.Join(p.State, "config.yaml"); p.Config == "" && p.Machine != "" && isThere(own) && isThere(p.Machine) {
		return Config{}, Source{}, fault.New(fault.ErrConflict, "there are two configuration files, %s and %s, and only one can count; put what is to count into one, and remove the other", own, p.Machine)
	}
	trees := written.OrAnywhere(p.Written())
	file, err := privatefile.ReadTrusted("the configuration file", path, mostConfig, trees)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && (!missing || p.Config != "") {
		return Config{}, Source{}, err
	}
	c, at := Config{}, placesOf(file.Data)
	dec := yaml.NewDecoder(bytes.NewReader(file.Data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, Source{}, fault.Invalid("the configuration file %s is wrong: %s", path, at.plainly(err))
	}
	if err := dec.Decode(new(yaml.Node)); len(file.Data) > 0 && !errors.Is(err, io.EOF) {
		return Config{}, Source{}, fault.Invalid("the configuration file %s has more than one document, and only the first would count; keep one", path)
	}
	if zero := at.zero(c); zero != "" {
		return Config{}, Source{}, fault.Invalid("the configuration file %s is wrong: %s", path, at.place(zero+" is 0, which would be as if it were not there; leave it out for its default, or give a number above 0"))
	}
	if err := c.keptWell(path, file.Mode); err != nil {
		return Config{}, Source{}, err
	}
	if err := c.checkKeys(trees); err != nil {
		return Config{}, Source{}, fault.Wrap(fault.ErrInvalid, at.placeAll(err), "the configuration file %s is wrong", path)
	}
	from := Source{Path: path, places: at}
	if !missing {
		sum := sha256.Sum256(file.Data)
		from.SHA256 = hex.EncodeToString(sum[:])
	}
	return c.withDefaults(), from, nil
}
