package advisory

import (
	"bytes"
	"embed"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// ShippedLabel names the popularity lists that come with the product. They
// stand for an ecosystem until a list of it is imported.
const ShippedLabel = "shipped"

// ShippedDate is when they were made, "2026-11".
const ShippedDate = "2026-11"

//go:embed shipped/*.txt
var shipped embed.FS

// shippedNames is the list of an ecosystem; tests hold that it can be read.
func shippedNames(ecosystem pkgref.Ecosystem) []string {
	data, err := shipped.ReadFile("shipped/" + string(ecosystem) + ".txt")
	if err != nil {
		return nil
	}
	list, err := readNames(bytes.NewReader(data), ecosystem)
	if err != nil {
		return nil
	}
	return list.names
}

func shippedDigest() string {
	var all []byte
	for _, e := range pkgref.Ecosystems() {
		for _, name := range shippedNames(e) {
			all = append(append(all, name...), '\n')
		}
	}
	return digest(all)
}
