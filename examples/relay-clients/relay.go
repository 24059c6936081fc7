// Package relay is the control interface of `longfat relay --control`. It has one method for each request.
package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
)

// Relay is a running relay: the URL of its control interface, such as http://127.0.0.1:8475, and its token.
type Relay struct {
	URL   string
	Token string
}

func (r Relay) call(method, path string, body any) (map[string]any, error) {
	text := []byte{}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequest(method, r.URL+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	found := map[string]any{}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("longfat: %v", found["error"])
	}
	return found, nil
}

// Path returns the keys of the path, as set and by direction.
func (r Relay) Path() (map[string]any, error) { return r.call("GET", "/path", nil) }

// Set changes keys of the path; nil removes a key.
func (r Relay) Set(keys map[string]any) (map[string]any, error) { return r.call("PATCH", "/path", keys) }

// Outage takes directions ("both", "forward" or "reverse") down for a time such as "2s".
func (r Relay) Outage(duration, direction string) error {
	_, err := r.call("POST", "/outage", map[string]any{"duration": duration, "direction": direction})
	return err
}

// EndOutage ends outages.
func (r Relay) EndOutage() error {
	_, err := r.call("DELETE", "/outage", nil)
	return err
}

// Drop drops the next packets of directions.
func (r Relay) Drop(count int, direction string) error {
	_, err := r.call("POST", "/drops", map[string]any{"count": count, "direction": direction})
	return err
}

// Reset resets all connections.
func (r Relay) Reset() error {
	_, err := r.call("POST", "/resets", nil)
	return err
}

// Report returns counters and percentiles.
func (r Relay) Report() (map[string]any, error) { return r.call("GET", "/report", nil) }
