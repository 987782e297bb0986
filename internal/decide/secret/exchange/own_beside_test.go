package exchange

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
)

// TestAnotherKeyBeforeThePlaceholder: a host that parts ID:KEY at its colons takes the first two of three
// (JavaScript: const [id, key] = text.split(":")), so that what stands between is a key of the client's own.
func TestAnotherKeyBeforeThePlaceholder(t *testing.T) {
	for value, wanted := range map[string]bool{
		"ApiKey 4711:" + fake:              true, // controls
		"Bearer " + fake:                   true,
		"ApiKey 4711:another-accounts-key": false,
		"ApiKey 4711 another-accounts-key": false,
		"Basic " + base64.StdEncoding.EncodeToString([]byte("4711:another-accounts-key:"+fake)): false,
		"ApiKey 4711:another-accounts-key:" + fake:                                              false,
		"ApiKey another-accounts-key/" + fake:                                                   true, // whose it is
		"ApiKey 4711:another-accounts-key/" + fake:                                              false,
		"ApiKey 4711:another-accounts-key." + fake:                                              false,
		"ApiKey hT9kQ2mZ7xW4vB8nR5cL1pS6:" + fake:                                               false,
		"ApiKey 4711.another-accounts-key." + fake:                                              false,
		"ApiKey 4711/another-accounts-key/" + fake:                                              false,
		"ApiKey 550e8400-e29b-41d4-a716-446655440000:" + fake:                                   true, // ids of services
		"ApiKey 4711:550e8400-e29b-41d4-a716-446655440000:" + fake:                              false,
		"AWS AKIAIOSFODNN7EXAMPLE:" + fake:                                                      true,
		"Token first.last@mail.example:" + fake:                                                 true,
		"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+fake)):                      true,
		"Basic " + base64.StdEncoding.EncodeToString([]byte("first.last@mail.example:"+fake)):   true,
		"ApiKey tenants/4711:" + fake:                                                           true,
		"Token customer/user!name=" + fake:                                                      true,
		"ApiKey 4711:hT9kQ2mZ7xW4vB8nR5cL1pS6:" + fake:                                          false,
	} {
		r := post(t, "/v1", "", "")
		r.Header = http.Header{"Authorization": {value}}
		err := New([]Credential{swapping(Header, Basic)}, all(), &vault{}).Outgoing(r)
		if refusal, is := errors.AsType[*Refused](err); (err == nil) != wanted || err != nil && !is {
			t.Errorf("%q: %v, %v", value, err, refusal)
		}
	}
}
