"""A model of one machine's runs on another machine: counts stay, laws are the other platform's."""
