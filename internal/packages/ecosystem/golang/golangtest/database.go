package golangtest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// tileHeight is the one that the go command asks for.
const tileHeight = 8

// Database is a checksum database.
type Database struct {
	Name     string
	Verifier string // name and public key, as GOSUMDB has it

	tb      testing.TB
	signer  note.Signer
	records [][]byte
	hashes  hashes
	ids     map[string]int64 // by "PATH@VERSION", escaped
}

type hashes []tlog.Hash

// ReadHashes implements tlog.HashReader.
func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var out []tlog.Hash
	for _, i := range indexes {
		if i < 0 || i >= int64(len(h)) {
			return nil, fmt.Errorf("there is no hash %d", i)
		}
		out = append(out, h[i])
	}
	return out, nil
}

// NewDatabase makes a database with a key of its own and the records of modules.
func NewDatabase(tb testing.TB, name string, modules ...Module) *Database {
	tb.Helper()
	secret, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		tb.Fatal(err)
	}
	d := &Database{Name: name, Verifier: public, tb: tb, signer: signer, ids: map[string]int64{}}
	for _, m := range modules {
		d.Add(m)
	}
	return d
}

// Fork is another history with the same key: nothing is in it yet.
func (d *Database) Fork() *Database {
	return &Database{Name: d.Name, Verifier: d.Verifier, tb: d.tb, signer: d.signer, ids: map[string]int64{}}
}

// Add appends a module's record and gives its number.
func (d *Database) Add(m Module) int64 {
	d.tb.Helper()
	return d.AddRecord(m.Escaped(d.tb, ""), fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version, m.ZipSum, m.Path, m.Version, m.ModSum))
}

// AddRecord appends any record, to be found as "PATH@VERSION", escaped.
func (d *Database) AddRecord(release, text string) int64 {
	d.tb.Helper()
	id := int64(len(d.records))
	more, err := tlog.StoredHashes(id, []byte(text), d.hashes)
	if err != nil {
		d.tb.Fatal(err)
	}
	d.records, d.hashes = append(d.records, []byte(text)), append(d.hashes, more...)
	d.ids[release] = id
	return id
}

// Size is the number of records.
func (d *Database) Size() int64 { return int64(len(d.records)) }

// Head is the signed head of the first size records.
func (d *Database) Head(size int64) []byte {
	d.tb.Helper()
	hash, err := tlog.TreeHash(size, d.hashes)
	if err != nil {
		d.tb.Fatal(err)
	}
	msg, err := note.Sign(&note.Note{Text: string(tlog.FormatTree(tlog.Tree{N: size, Hash: hash}))}, d.signer)
	if err != nil {
		d.tb.Fatal(err)
	}
	return msg
}

// Record is the answer to the lookup of a record, with a head.
func (d *Database) Record(id int64, head []byte) []byte {
	d.tb.Helper()
	msg, err := tlog.FormatRecord(id, d.records[id])
	if err != nil {
		d.tb.Fatal(err)
	}
	return append(msg, head...)
}

// Answer is the honest answer to a path below the database's base: "latest",
// "lookup/..." or "tile/...".
func (d *Database) Answer(path string) ([]byte, bool) {
	if path == "latest" {
		return d.Head(d.Size()), true
	}
	if release, ok := strings.CutPrefix(path, "lookup/"); ok {
		id, ok := d.ids[release]
		if !ok {
			return nil, false
		}
		return d.Record(id, d.Head(d.Size())), true
	}
	tile, err := tlog.ParseTilePath(path)
	if err != nil || tile.L < 0 {
		return nil, false
	}
	data, err := tlog.ReadTileData(tile, d.hashes)
	return data, err == nil
}

// Answers are the honest answers to all that a client of this size asks for.
func (d *Database) Answers() map[string]Answer {
	answers := map[string]Answer{"latest": {"text/plain; charset=utf-8", d.Head(d.Size())}}
	for release := range d.ids {
		body, _ := d.Answer("lookup/" + release)
		answers["lookup/"+release] = Answer{"text/plain; charset=utf-8", body}
	}
	for size := int64(1); size <= d.Size(); size++ {
		for _, tile := range tlog.NewTiles(tileHeight, 0, size) {
			if body, ok := d.Answer(tile.Path()); ok {
				answers[tile.Path()] = Answer{"application/octet-stream", body}
			}
		}
	}
	return answers
}
