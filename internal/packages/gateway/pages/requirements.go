package pages

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
)

// maxRequirements bounds the pages whose requirements are kept over a restart.
const maxRequirements = 5_000

// requirements are what the releases of a page require. Reading them from the
// rows takes a while, and each run asks for them, so they are kept.
type requirements struct {
	list  []door.Requirement
	files [][]int32 // by requirement: the files that have it, in the index's order
}

// requiredKey covers what the requirements of a page's releases depend on.
type requiredKey struct {
	page          key
	source, known string
	files         int // of the page, whatever it was read from
}

// String implements memo.Key.
func (k requiredKey) String() string {
	return strings.Join([]string{strconv.Itoa(keptFormat), k.page.String(), k.source, k.known}, " ")
}

// sizeInMemory is about what they take in memory.
func (r *requirements) sizeInMemory() int64 {
	size := int64(500)
	for i, required := range r.list {
		size += int64(len(required.Name)+len(required.Specifier)+4*len(r.files[i])) + 100
	}
	return size
}

// keptRequirement is a line of what is kept.
type keptRequirement struct {
	Name      string  `json:"n"`
	Specifier string  `json:"s,omitempty"`
	Files     []int32 `json:"f"`
	Optional  bool    `json:"o,omitempty"`
}

func requirementsFormat() memo.Format[requiredKey, *requirements] {
	return memo.Format[requiredKey, *requirements]{
		Encode: (*requirements).packed,
		Decode: func(k requiredKey, data []byte) (*requirements, error) { return readRequirements(data, k.files) },
	}
}

func (r *requirements) packed() ([]byte, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	lines := json.NewEncoder(z)
	for i, required := range r.list {
		err = errors.Join(err, lines.Encode(keptRequirement{required.Name, required.Specifier, r.files[i], required.Optional}))
	}
	err = errors.Join(err, z.Close())
	return packed.Bytes(), err
}

// readRequirements reads what was kept of a page with so many files.
func readRequirements(data []byte, files int) (*requirements, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the kept requirements can't be read")
	}
	all := &requirements{}
	for lines := json.NewDecoder(z); ; {
		var line keptRequirement
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "the kept requirements can't be read")
		}
		if slices.ContainsFunc(line.Files, func(i int32) bool { return i < 0 || int(i) >= files }) {
			return nil, fault.Invalid("the kept requirements are of another page")
		}
		all.list = append(all.list, door.Requirement{Name: line.Name, Specifier: line.Specifier, Optional: line.Optional})
		all.files = append(all.files, slices.Clip(line.Files))
	}
}
