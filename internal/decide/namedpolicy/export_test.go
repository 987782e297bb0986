package namedpolicy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// History returns what a name stood for, the oldest first, also that of one
// which was removed. A name that nothing was ever put under has none.
func (s *Store) History(name string) ([]Change, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(s.historyPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the history of the policy %s can't be read", name)
	}
	var all []Change
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var c Change
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			continue // torn by a crash: the next line is whole again
		}
		all = append(all, c)
	}
	return all, lines.Err()
}
