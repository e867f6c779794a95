SELECT store_id, url FROM strandline_store WHERE purpose = $1
