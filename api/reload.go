package api

// ConfigReload is what came of reading the configuration file again: POST /v1/config/reload.
type ConfigReload struct {
	File     string   `json:"file"`             // that was read, if it is there
	SHA256   string   `json:"sha256,omitempty"` // of it; absent: there is none
	Reloaded []string `json:"reloaded"`         // the keys that have changed and count now
	AtStart  []string `json:"at_start"`         // the keys that differ from what the daemon goes by, and count from its next start
}
