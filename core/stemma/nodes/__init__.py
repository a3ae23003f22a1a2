"""The six node caches: what each is asked, and how that becomes scope, key and codec."""
