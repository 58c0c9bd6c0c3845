// Package imagestreamtag splits ImageStreams into their tags. A change of a stream becomes one key for every changed
// tag. [Get] returns a tag together with the image that it points at.
package imagestreamtag
