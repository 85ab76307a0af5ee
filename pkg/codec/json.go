package codec

import (
	"errors"

	"sigs.k8s.io/json"
)

// strictJSON decodes what we have written ourselves, or what an author writes
// for us: names in their exact case, none twice, none unknown.
func strictJSON(text string, into any) error {
	return decodeJSON(text, into, json.DisallowDuplicateFields, json.DisallowUnknownFields)
}

// openJSON decodes what others write, who may know more fields than we do.
func openJSON(text string, into any) error {
	return decodeJSON(text, into, json.DisallowDuplicateFields)
}

func decodeJSON(text string, into any, options ...json.StrictOption) error {
	faults, err := json.UnmarshalStrict([]byte(text), into, options...)
	return errors.Join(append(faults, err)...)
}
