package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ReadArgs reads a plugin's arguments, a JSON object, into the struct that into
// points to, which has a tag without omitempty for each field. What is not named
// keeps its value. A name that does not exist is refused, also one that differs in
// case alone.
func ReadArgs(text []byte, into any) error {
	if len(text) == 0 {
		return nil
	}
	var given, known map[string]json.RawMessage
	if json.Unmarshal(text, &given) != nil {
		return errors.New("is not an object")
	}
	names, err := json.Marshal(into)
	if err == nil {
		err = json.Unmarshal(names, &known)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("%s: there is no such argument", name)
		}
		if bytes.Equal(given[name], []byte("null")) {
			return fmt.Errorf("%s: null is no value; leave it out", name)
		}
	}
	err = json.Unmarshal(text, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s: is a %s, and not a %s", wrong.Field, wrong.Value, wrong.Type)
	}
	return err
}
